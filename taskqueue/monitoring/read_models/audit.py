"""Audit entries, as all interfaces show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit
from taskqueue.monitoring.read_models.base import about


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


def audit_entries(
    *, subject: str = "", actor: str = "", verb: str = "", since: datetime | None = None
) -> QuerySet[Audit]:
    """Return the entries that match all given arguments, newest first."""
    given = {"subject": subject, "actor": actor, "verb": verb, "at__gte": since}
    chosen = {name: value for name, value in given.items() if value}
    return Audit.objects.using(database_alias()).filter(**chosen).order_by("-id")
