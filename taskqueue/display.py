"""Show values on the admin's pages: points in time, durations, badges, JSON, long text.

Templates use the same functions as filters, such as `{{ task.run_after|moment }}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

# The placeholder for an empty value; lists on a phone leave it out.
EMPTY = SafeString('<span class="taskqueue-none">-</span>')
# Characters of one value on a page.
LONGEST = 20_000


def is_empty(shown: object) -> bool:
    """Return whether that is the placeholder, ours or Django's."""
    return shown in (EMPTY, "-")


def labelled(label: object, text: object) -> str:
    """Return `label: text`, with the colon of the language."""
    return f"{label}{_(': ')}{text}"


def or_empty(value: object) -> object:
    """Return the value, or the placeholder if there is none."""
    return EMPTY if value in (None, "") else value


def moment(value: datetime | None) -> SafeString:
    """Show a moment in the current time zone, to the second; the tooltip has the exact time."""
    if value is None:
        return EMPTY
    local = local_time(value)
    return format_html(
        '<time class="taskqueue-time" datetime="{0}" title="{0}"><span>{1}</span> {2}</time>',
        local.isoformat(),
        local.strftime("%Y-%m-%d"),
        local.strftime("%H:%M:%S"),
    )


def compact(value: Any) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def as_json(value: Any) -> SafeString:
    """Show a value as indented JSON, cut if it is long."""
    return preformatted(json.dumps(value, indent=2, ensure_ascii=False))


def preformatted(text: str) -> SafeString:
    """Show text with its line breaks, cut if it is long."""
    if not text:
        return EMPTY
    if len(text) > LONGEST:
        more = _("%(number)s more characters") % {"number": f"{len(text) - LONGEST:,}"}
        text = f"{text[:LONGEST]}\n… [{more}]"
    return format_html('<pre class="taskqueue-text">{}</pre>', text)


def breakable(name: str) -> SafeString:
    """Show a dotted name that a browser may break after its dots only."""
    return format_html_join(SafeString(".<wbr>"), "{}", ((part,) for part in name.split(".")))


# The last digits of an id distinguish tasks; the first ones are the time.
DIGITS = 8


def last_digits(key: object) -> SafeString:
    """Show the end of an id in a list; its tooltip has the whole."""
    return format_html('<code title="{}">…{}</code>', key, str(key)[-DIGITS:])


WORDS: dict[str, Any] = {
    # Tasks
    "blocked": gettext_lazy("blocked"),
    "scheduled": gettext_lazy("scheduled"),
    "ready": gettext_lazy("ready"),
    "running": gettext_lazy("running"),
    "retrying": gettext_lazy("retrying"),
    "succeeded": gettext_lazy("succeeded"),
    "failed": gettext_lazy("failed"),
    "cancelled": gettext_lazy("cancelled"),
    # Attempts
    "lost": gettext_lazy("lost"),
    "stopped": gettext_lazy("stopped"),
    "returned": gettext_lazy("returned"),
    # Workers
    "active": pgettext_lazy("state", "active"),
    "quiet": gettext_lazy("quiet"),
    "draining": gettext_lazy("draining"),
    "stopping": gettext_lazy("stopping"),
    # Queues and schedules
    "paused": gettext_lazy("paused"),
    "unserved": gettext_lazy("no worker"),
    "disabled": gettext_lazy("disabled"),
    "removed": gettext_lazy("removed from code"),
    "trouble": gettext_lazy("has a problem"),
    "over": gettext_lazy("over"),
    "overdue": gettext_lazy("overdue"),
    # Occurrences and operations
    "waiting": gettext_lazy("waiting"),
    "compensating": gettext_lazy("compensating"),
    "enqueued": gettext_lazy("enqueued"),
    "ended": gettext_lazy("ended"),
    "skipped": gettext_lazy("skipped"),
    "finished": gettext_lazy("finished"),
    # Deliveries
    "delivered": gettext_lazy("delivered"),
}
# States that borrow the colour of another state.
LOOKS = {
    "unserved": "error",
    "trouble": "error",
    "overdue": "error",
    "enqueued": "ready",
    "ended": "finished",
    "delivered": "succeeded",
}


def status_word(state: str) -> Any:
    """Return the word for a state."""
    return WORDS.get(state, state)


def badge(state: str, text: object = None) -> SafeString:
    """Show a state as a badge; `text` replaces its usual word."""
    look = LOOKS.get(state, state) if state in WORDS else "other"
    shown = WORDS.get(state, state) if text is None else text
    return format_html('<span class="taskqueue-badge taskqueue-badge--{}">{}</span>', look, shown)


def local_time(moment: datetime) -> datetime:
    """Return the moment in the current time zone; in UTC if it is outside the calendar there.

    A task may be due in the last hour of the year 9999, which east of UTC is the year 10000.
    """
    return in_zone(moment, timezone.get_current_timezone())


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return the moment in a time zone; in UTC if it is outside the calendar there."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def short_moment(
    moment: datetime | None, dated: str = "%m-%d %H:%M", look: str = "moment"
) -> SafeString:
    """Show a moment briefly, without its date if it is today; the tooltip has the exact time."""
    if moment is None:
        return SafeString("")
    local = local_time(moment)
    return format_html(
        '<time class="taskqueue-{0}" datetime="{1}" title="{1}">{2}</time>',
        look,
        local.isoformat(timespec="seconds"),
        local.strftime("%H:%M:%S" if local.date() == timezone.localdate() else dated),
    )


def number(value: int) -> str:
    """Write a number with its thousands apart."""
    return number_format(value, use_l10n=True, force_grouping=True)


def share(rate: float) -> str:
    """Write a share of one as per cent; a share above zero is never written as zero."""
    percent = rate * 100
    shown = 0.1 if 0 < percent < 0.1 else math.floor(percent * 10 + 0.5) / 10
    return _("%(number)s %%") % {"number": f"{shown:g}"}


def change(ratio: float | None) -> SafeString:
    """Show by how much a figure has grown; growth by half or more is highlighted."""
    if ratio is None:
        return EMPTY
    shown = _("%(number)s %%") % {"number": _signed(round(ratio * 100), ",")}
    return _changed(shown, is_worse=ratio >= 0.5)


def points(difference: float | None) -> SafeString:
    """Show by how many percentage points a rate has changed; ten or more are highlighted."""
    if difference is None:
        return EMPTY
    shown = _("%(number)s points") % {"number": _signed(round(difference * 100, 1), ".1f")}
    return _changed(shown, is_worse=difference >= 0.1)


def _signed(value: float, form: str) -> str:
    """Write a number with its sign; zero has none."""
    return f"{value:+{form}}" if value else "0"


def _changed(shown: str, *, is_worse: bool) -> SafeString:
    worse = " taskqueue-change--worse" if is_worse else ""
    return format_html('<span class="taskqueue-change{}">{}</span>', worse, shown)


def one_line(text: str, longest: int) -> str:
    """Show the beginning of a text, without its line breaks."""
    return Truncator(" ".join(text.split())).chars(longest)


def seconds_until(moment: datetime | None, end: datetime) -> float | None:
    """Return the seconds between two moments, for filters that show a duration."""
    return None if moment is None else max(0.0, (end - moment).total_seconds())


def svg_number(value: float) -> str:
    """Write a number for an attribute: no locale, two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


SPARK_WIDTH, SPARK_HEIGHT = 72, 20


def sparkline(counts: Sequence[int]) -> SafeString:
    """Draw the finished tasks of the last hour as bars for a table cell."""
    ended = sum(counts)
    text = ngettext(
        "%(count)d finished in the last hour", "%(count)d finished in the last hour", ended
    )
    return spark(counts, text % {"count": ended})


def spark(counts: Sequence[int], text: str) -> SafeString:
    """Draw a few numbers as bars for a table cell; screen readers read the text."""
    width, most = SPARK_WIDTH / max(1, len(counts)), max([1, *counts])
    heights = [max(1.0, SPARK_HEIGHT * count / most) for count in counts]
    bars = "".join(
        f"M{svg_number(width * place)} {SPARK_HEIGHT}v-{svg_number(height)}"
        f"h{svg_number(width * 0.8)}v{svg_number(height)}z"
        for place, height in enumerate(heights)
    )
    return format_html(
        '<svg class="taskqueue-spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{text}"><title>{text}</title><path d="{bars}"/></svg>',
        w=SPARK_WIDTH, h=SPARK_HEIGHT, text=text, bars=bars,
    )  # fmt: skip
