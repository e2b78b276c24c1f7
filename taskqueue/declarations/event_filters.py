"""Filters of events, for subscriptions and readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol
from uuid import UUID

from taskqueue.core.event_kinds import kinds_of
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.exceptions import InvalidSubscription

# Patterns of one subscription.
MOST_PATTERNS = 100
LONGEST_PATTERN = 255


class Happened(Protocol):
    """The part of an event that a filter reads."""

    kind: str
    task_id: UUID | None
    workflow_id: UUID | None
    name: str
    queue_name: str


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """The events that fit each condition; a condition that is empty lets all pass."""

    # In full, never as patterns.
    kinds: tuple[str, ...]
    # Patterns with `*` and `?`, as `fnmatch` has them.
    names: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    task_id: UUID | None = None
    workflow_id: UUID | None = None

    @classmethod
    def of(
        cls,
        kinds: str | Iterable[str] = (),
        *,
        name: str | Iterable[str] = (),
        queue: str | Iterable[str] = (),
        task: UUID | str | None = None,
        workflow: UUID | str | None = None,
    ) -> EventFilter:
        """Check the conditions as callers write them. Raises `InvalidSubscription`."""
        if not isinstance(kinds, Iterable):
            raise InvalidSubscription(_(
                "kinds must be text such as 'task.*', not {kinds!r}.", kinds=kinds
            ), path=("kinds",))  # fmt: skip
        try:
            wanted = kinds_of([kinds] if isinstance(kinds, str) else kinds)
        except ValueError as error:
            raise InvalidSubscription(why(error), path=("kinds",)) from None
        return cls(
            kinds=tuple(wanted),
            names=_patterns(name, "name"),
            queues=_patterns(queue, "queue"),
            task_id=_uuid(task, "task"),
            workflow_id=_uuid(workflow, "workflow"),
        )

    @property
    def columns(self) -> dict[str, Any]:
        """Its conditions as columns of a subscription."""
        return {
            "kinds": list(self.kinds),
            "names": list(self.names),
            "queues": list(self.queues),
            "task_id": self.task_id,
            "workflow_id": self.workflow_id,
        }


def fits(event: Happened, wanted: Any) -> bool:
    """Return whether an event fits a filter, or the row of a subscription."""
    return (
        event.kind in wanted.kinds
        and (wanted.task_id is None or wanted.task_id == event.task_id)
        and (wanted.workflow_id is None or wanted.workflow_id == event.workflow_id)
        and _fits_any(event.name, wanted.names)
        and _fits_any(event.queue_name, wanted.queues)
    )


def _fits_any(value: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)


def _patterns(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise InvalidSubscription(_(
            "{what} must be a pattern such as 'shop.*', not {given!r}.", what=what, given=given
        ), path=(what,))  # fmt: skip
    patterns = (given,) if isinstance(given, str) else tuple(given)
    if len(patterns) > MOST_PATTERNS:
        raise InvalidSubscription(_(
            "A subscription has at most {most_patterns} patterns of {what}.",
            most_patterns=MOST_PATTERNS, what=what,
        ), path=(what,))  # fmt: skip
    for pattern in patterns:
        if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
            raise InvalidSubscription(_(
                "{what} must be a pattern of up to {longest_pattern} characters, such as 'shop.*', "
                "not {pattern!r}.",
                what=what, longest_pattern=LONGEST_PATTERN, pattern=pattern,
            ), path=(what,))  # fmt: skip
        if "[" in pattern or "\x00" in pattern:
            raise InvalidSubscription(_(
                "A pattern of {what} may have * and ? only, not [: {pattern!r}.",
                what=what, pattern=pattern,
            ), path=(what,))  # fmt: skip
    return tuple(dict.fromkeys(patterns))


def _uuid(value: UUID | str | None, what: str) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise InvalidSubscription(_(
            "{what} must be an id, not {value!r}.", what=what, value=value
        ), path=(what,)) from None  # fmt: skip
