"""Explain errors in cron expressions that croniter refuses.

Its own messages are English only and describe its internals.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidSchedule


def no_expression(expression: str, names: Sequence[str]) -> InvalidSchedule:
    """Return the error of an expression, by the first field that is wrong; `names` are theirs."""
    texts = expression.split()
    for place, (name, text) in enumerate(zip(names, texts, strict=False)):
        alone = ["*"] * len(texts)
        alone[place] = text
        if not _is_read(" ".join(alone)):
            return InvalidSchedule(_(
                "Cron: {expression} is not a cron expression: the {field} cannot be {text}.",
                expression=shown(expression), field=name, text=shown(text),
            ))  # fmt: skip
    return InvalidSchedule(_(
        "Cron: {expression} is not a cron expression, or never fires: each field is right, but not "
        "all of them together.",
        expression=shown(expression),
    ))  # fmt: skip


def _is_read(expression: str) -> bool:
    from croniter import croniter  # late: not everybody who imports taskqueue has schedules

    with suppress(Exception):  # croniter raises KeyError, TypeError and others for some texts
        croniter.expand(expression, strict=True)
        return True
    return False
