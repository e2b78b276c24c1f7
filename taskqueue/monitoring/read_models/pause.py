"""Pauses of definitions and of everything; pauses of queues are shown with the queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.unknown_names import unknown_definitions
from taskqueue.models import Pause
from taskqueue.models.parts import DatabaseClock
from taskqueue.models.pause import EVERYTHING
from taskqueue.monitoring.read_models.base import about, from_row

MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class ShownPauseState:
    """A pause that lasts; or, for one definition or everything, that there is none."""

    definition: str | None = about(
        "The name of the definition; null: everything.", empty="(everything)"
    )
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str
    pause_reason: str
    hint: str = about(
        "Says that nobody knows the definition here, and which may be meant; empty: it is known."
    )


def read_pauses(*, limit: int = MOST) -> list[ShownPauseState]:
    """Return the current pauses: that of everything first, then those of definitions by name."""
    rows = lasting(_rows().order_by("name")[:limit])
    hints = _hints(row.name for row in rows)
    return [_shown(row, hints) for row in rows]


def pause_of(definition: str | None) -> ShownPauseState:
    """Return whether a definition, or everything, is paused."""
    rows = _rows().filter(name=EVERYTHING if definition is None else definition)
    hints = _hints([definition or EVERYTHING])
    for row in lasting(rows):
        return _shown(row, hints)
    return ShownPauseState(
        definition=definition, is_paused=False, paused_at=None, paused_until=None,
        paused_by="", pause_reason="", hint=hints.get(definition, "") if definition else "",
    )  # fmt: skip


def lasting(rows: Iterable[Any]) -> list[Any]:
    """Return the pauses that are not over."""
    return [row for row in rows if row.is_paused_at(row.now)]


def _rows() -> Any:
    return Pause.objects.using(database_alias()).annotate(now=DatabaseClock())


def _hints(names: Iterable[str]) -> dict[str, str]:
    named = [name for name in names if name != EVERYTHING]
    return unknown_definitions(project_connection(), named) if named else {}


def _shown(row: Any, hints: Mapping[str, str]) -> ShownPauseState:
    return from_row(
        ShownPauseState, row,
        definition=row.name or None, is_paused=True, hint=hints.get(row.name, ""),
    )  # fmt: skip
