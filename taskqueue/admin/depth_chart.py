"""A chart of waiting tasks over time, drawn like those of `taskqueue.admin.charts`."""

from __future__ import annotations

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.charts import (
    GAP,
    HEIGHT,
    LEAST,
    PARTS,
    WIDTH,
    Line,
    count_text,
    figure,
    nice_top,
    nothing,
    per_step,
)
from taskqueue.display import svg_number
from taskqueue.monitoring.depths import Depths, highest

WAITING = gettext_lazy("waiting")


def depth_chart(depths: Depths) -> SafeString:
    """Draw the highest number of waiting tasks in each step."""
    if all(number is None for number in depths.waiting):
        return nothing(_("No worker recorded in this period how many tasks wait."))
    most = highest(depths.waiting)
    top, step = nice_top(most), per_step(depths.step_seconds)
    width = WIDTH / len(depths.starts)
    texts = [
        "" if number is None else _text(number, start in depths.capped)
        for start, number in zip(depths.starts, depths.waiting, strict=True)
    ]
    return figure(
        "depth",
        depths,
        {
            "waiting": Line(
                WAITING, texts, _("at most %(number)s") % {"number": _text(most, depths.is_capped)}
            )
        },
        y_labels=[count_text(top * part // PARTS) for part in range(PARTS, -1, -1)],
        marks=(),
        links=None,
        key="depth",
        title=_("Waiting tasks %(step)s") % {"step": step},
        unit=_("highest count %(step)s; workers record it once a minute") % {"step": step},
        bar_width=svg_number(width * (1 - GAP)),
        bars=[
            {
                "x": svg_number(width * (place + GAP / 2)),
                "y": svg_number(HEIGHT - height),
                "height": svg_number(height),
            }
            for place, number in enumerate(depths.waiting)
            if number
            for height in [max(LEAST, HEIGHT * number / top)]
        ],
    )


def _text(number: int, is_capped: bool) -> str:
    return f"{number}+" if is_capped else str(number)
