"""Audit: who did what to what, and why, written in the transaction of the act."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import Audit
from taskqueue.payload import storable

LONGEST_ACTOR, LONGEST_REASON = 150, 1000


class Person(NamedTuple):
    """Who acts, and why; as text that any database can store."""

    by: str
    reason: str


class Act(NamedTuple):
    """What was done to one subject: the status that it had, and what was changed."""

    subject: str
    before: str = ""
    detail: str = ""


def person(by: str, reason: str) -> Person:
    """The names made fit for any column; never raises."""
    return Person(storable(by, limit=LONGEST_ACTOR), storable(reason, limit=LONGEST_REASON))


def audit(
    connection: BaseDatabaseWrapper, verb: str, acts: Iterable[Act], *, person: Person
) -> None:
    """Write a line for each act."""
    Audit.objects.using(connection.alias).bulk_create(
        [
            Audit(
                actor=person.by,
                verb=verb,
                subject=act.subject,
                reason=person.reason,
                before=act.before,
                detail=storable(act.detail, limit=LONGEST_REASON),
            )
            for act in acts
        ]
    )
