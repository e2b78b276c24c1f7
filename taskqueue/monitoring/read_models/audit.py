"""Audit entries: who did what by hand, to what, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from taskqueue.models import Audit
from taskqueue.monitoring.read_models.base import about, from_row


@dataclass(frozen=True, kw_only=True)
class ShownAuditEntry:
    """One act of a person, or of the code that declares schedules."""

    id: int
    at: datetime
    actor: str = about("Who did it.")
    noun: str = about("The kind of the subject, such as `task`.")
    verb: str
    subject: str = about("The id or the name of what it was done to.")
    reason: str
    before: str = about("The status before; empty: not recorded.")
    detail: str = about("The changes, and the new values.")


def audit_entries(rows: Iterable[Audit]) -> list[ShownAuditEntry]:
    """Make the read models of rows."""
    return [from_row(ShownAuditEntry, row) for row in rows]
