"""Audit: who did what to what, and why, written in the transaction of the act."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.payload import storable

LONGEST_ACTOR, LONGEST_REASON = 150, 1000
# Not by the ORM: of a bulk act on many tasks, its lines would take half of the time. `at` is the
# database's clock by default.
INSERT = """
INSERT INTO taskqueue_audit (actor, noun, verb, subject, reason, before, detail)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


class Person(NamedTuple):
    """Who acts, and why; as text that any database can store."""

    by: str
    reason: str


class Act(NamedTuple):
    """What was done to one subject: the status that it had, and what was changed."""

    subject: str
    before: str = ""
    detail: str = ""


def person(by: object, reason: object) -> Person:
    """What was given as text fit for any column, None as none; never raises.

    `by` may be a user object.
    """
    return Person(
        storable(_text(by), limit=LONGEST_ACTOR), storable(_text(reason), limit=LONGEST_REASON)
    )


def _text(value: object) -> str:
    try:
        return "" if value is None else str(value)
    except Exception:  # Whoever acts is not stopped by how an object shows itself.
        return type(value).__name__


def audit(
    connection: BaseDatabaseWrapper, noun: str, verb: str, acts: Iterable[Act], *, person: Person
) -> None:
    """Write an entry for each subject of that noun to which the verb was done."""
    lines = [
        (
            person.by,
            noun,
            verb,
            act.subject,
            person.reason,
            act.before,
            storable(act.detail, limit=LONGEST_REASON),
        )
        for act in acts
    ]
    if not lines:
        return
    with connection.cursor() as cursor:
        cursor.executemany(INSERT, lines)
