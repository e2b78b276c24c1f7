"""Pauses of definitions, and of everything; those of queues are shown with these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from taskqueue.engine.connections import database_alias
from taskqueue.models import Pause
from taskqueue.models.parts import DatabaseClock
from taskqueue.models.pause import EVERYTHING
from taskqueue.monitoring.read_models.base import about, from_row

MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class ShownPauseState:
    """A pause that lasts; or, for one definition or everything, that there is none."""

    definition: str | None = about("The name of the definition; null: everything.")
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str
    pause_reason: str


def read_pauses(*, limit: int = MOST) -> list[ShownPauseState]:
    """Return the pauses that last, that of everything first, then definitions by name."""
    return list(map(_shown, lasting(_rows().order_by("name")[:limit])))


def pause_of(definition: str | None) -> ShownPauseState:
    """Return whether a definition, or everything, is paused."""
    rows = _rows().filter(name=EVERYTHING if definition is None else definition)
    for row in lasting(rows):
        return _shown(row)
    return ShownPauseState(
        definition=definition, is_paused=False, paused_at=None, paused_until=None,
        paused_by="", pause_reason="",
    )  # fmt: skip


def lasting(rows: Iterable[Any]) -> list[Any]:
    """Those that are not over."""
    return [row for row in rows if row.is_paused_at(row.now)]


def _rows() -> Any:
    return Pause.objects.using(database_alias()).annotate(now=DatabaseClock())


def _shown(row: Any) -> ShownPauseState:
    return from_row(ShownPauseState, row, definition=row.name or None, is_paused=True)
