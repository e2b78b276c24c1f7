"""Outcomes that wait to be recorded: their rows, their ages and their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from taskqueue.core.outcomes import Outcome, OutcomeKind


def aged(outcome: Outcome, now: float) -> Outcome:
    """Return the outcome with ages instead of times; the database subtracts them from its clock."""
    # By position, which costs a third of `_replace`, because this runs for every attempt.
    lease_id, kind, ended, started, *rest = outcome
    return Outcome._make(
        (lease_id, kind, now - ended, None if started is None else now - started, *rest)
    )


def all_aged(outcomes: Sequence[Outcome], now: float) -> list[Outcome]:
    """Return the outcomes as from `aged`, computed column by column."""
    if not outcomes:
        return []
    lease_ids, kinds, ended, started, *rest = zip(*outcomes, strict=True)
    ages = [now - moment for moment in ended]
    since = [None if moment is None else now - moment for moment in started]
    return list(map(_outcome, zip(lease_ids, kinds, ages, since, *rest, strict=True)))


def succeeded(rows: Iterable[Sequence[Any]]) -> list[Outcome]:
    """Return the outcomes for the rows of a frame of successes."""
    return [
        _outcome((lease_id, OutcomeKind.SUCCEEDED, ended, started, *_PLAIN))
        for _, lease_id, ended, started in rows
    ]


# A named tuple's own methods cost twice as much, and these run for every attempt.
_outcome: Callable[[tuple[Any, ...]], Outcome] = partial(tuple.__new__, Outcome)
_PLAIN = tuple(Outcome._field_defaults[name] for name in Outcome._fields[4:])


def over_time(timeout: float, *, renews: bool) -> str:
    """Return the message for a time limit that is over."""
    if renews:
        return f"The body reported no progress for its timeout of {timeout:g} s."
    return f"The body ran for longer than its timeout of {timeout:g} s."


def over_memory(megabytes: int | None) -> str:
    """Return the message for an exceeded memory limit."""
    return f"The process of the body used more memory than its limit of {megabytes} MB."
