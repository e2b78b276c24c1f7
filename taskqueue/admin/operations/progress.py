"""How far an operation is, as its page and the list show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from taskqueue.admin.display import badge, moment, short_duration
from taskqueue.engine.operations import held_count
from taskqueue.models import Operation
from taskqueue.models.operation import OperationStatus

SOON = 1.0
"""Seconds after which a pace can be told."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Figures of one operation; a percentage where it is known of how many."""

    matched: int
    done: int
    held: int
    expected: int | None
    is_open: bool
    seconds: float | None
    """Since it was begun, until its last chunk."""

    @classmethod
    def of(cls, operation: Operation) -> Progress:
        """As the row stands."""
        return cls(
            matched=operation.matched,
            done=operation.done,
            held=held_count(operation) if operation.finished_at is None else 0,
            expected=operation.expected,
            is_open=operation.finished_at is None,
            seconds=_between(operation.started_at, operation.progressed_at),
        )

    @property
    def refused(self) -> int:
        """Those that it came to and could not do it to."""
        return self.matched - self.done - self.held

    @property
    def percent(self) -> int | None:
        """Of what was counted at its beginning; None where that is not known."""
        if not self.is_open:
            return 100
        if not self.expected:
            return None
        return min(99, 100 * (self.matched - self.held) // self.expected)

    @property
    def pace(self) -> float | None:
        """Tasks a second."""
        if self.seconds is None or self.seconds < SOON:
            return None
        return self.matched / self.seconds

    @property
    def left_seconds(self) -> float | None:
        """Until it has come to all, at the pace so far."""
        if not (self.is_open and self.pace and self.expected):
            return None
        return max(0.0, (self.expected - self.matched) / self.pace)


def number(value: int) -> str:
    """With its thousands apart."""
    return number_format(value, use_l10n=True, force_grouping=True)


def figures(operation: Operation, verb_label: object) -> dict[str, Any]:
    """What the refreshed part of the page shows."""
    progress = Progress.of(operation)
    has_ended_early = operation.status in (OperationStatus.FAILED, OperationStatus.CANCELLED)
    return {
        "operation": operation,
        "verb_label": verb_label,
        "status": badge(operation.status),
        "progress": progress,
        "percent": None if has_ended_early else progress.percent,
        "matched": number(progress.matched),
        "done": number(progress.done),
        "refused": number(progress.refused),
        "held": number(progress.held) if progress.held else "",
        "expected": "" if progress.expected is None else number(progress.expected),
        "pace": "" if progress.pace is None else number_format(progress.pace, 0),
        "left": short_duration(progress.left_seconds),
        "started_at": moment(operation.started_at),
        "progressed_at": moment(operation.progressed_at),
        "finished_at": moment(operation.finished_at),
    }


def of_how_many(operation: Operation) -> str:
    """Progress in the cell of a list."""
    if operation.expected is None or operation.finished_at is not None:
        return number(operation.done)
    return _("%(done)s of %(expected)s") % {
        "done": number(operation.done),
        "expected": number(operation.expected),
    }


def _between(first: datetime | None, last: datetime | None) -> float | None:
    return None if first is None or last is None else (last - first).total_seconds()
