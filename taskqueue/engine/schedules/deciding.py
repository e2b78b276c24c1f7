"""Choosing the nominal times that run, by the missed-run policy. No database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from taskqueue.core.policies import Missed

# A nominal time that is served no later than this, and before the next one, was not missed.
ON_TIME = timedelta(seconds=60)


class Decision(NamedTuple):
    """The decision on one nominal time."""

    nominal_at: datetime
    # Empty: it runs.
    reason: str


def decide(
    due: Sequence[datetime],
    *,
    missed: str,
    window: timedelta | None,
    now: datetime,
    has_more: bool = False,
) -> list[Decision]:
    """Decide these nominal times, in order. `has_more`: later ones have come too."""
    if not due:
        return []
    decided = [_earlier(nominal_at, missed, window, now) for nominal_at in due[:-1]]
    last = due[-1]
    if has_more:
        decided.append(_earlier(last, missed, window, now))
    elif now - last <= ON_TIME or missed == Missed.LATEST:
        decided.append(Decision(last, ""))
    else:
        decided.append(_earlier(last, missed, window, now))
    return decided


def _earlier(
    nominal_at: datetime, missed: str, window: timedelta | None, now: datetime
) -> Decision:
    """The decision for one that was missed, and is not the latest."""
    if missed == Missed.ALL:
        return Decision(nominal_at, "")
    if missed == Missed.LATEST:
        return Decision(nominal_at, "Missed; the latest one makes up for it.")
    if missed == Missed.WINDOW and window is not None:
        if now - nominal_at <= window:
            return Decision(nominal_at, "")
        return Decision(nominal_at, f"Missed by more than {window.total_seconds():g} s.")
    return Decision(nominal_at, "Missed: nobody served the schedule in time.")
