"""Audit: who did what to which subject, and why, written in the transaction of the action."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.payload import storable

LONGEST_ACTOR, LONGEST_REASON = 150, 1000
# Without the ORM: for a bulk action on many tasks, the entries would take half of the time. The
# default of `at` is the database's clock.
INSERT = """
INSERT INTO taskqueue_audit (actor, noun, verb, subject, reason, before, detail)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


class Person(NamedTuple):
    """The person who acts, and the reason, as text that any database can store."""

    by: str
    reason: str


class Act(NamedTuple):
    """An action on one subject, with its former status and what was changed."""

    subject: str
    before: str = ""
    detail: str = ""


def person(by: object, reason: object) -> Person:
    """Return both as text that fits any column, with None as empty text; never raise.

    `by` may be a user object.
    """
    return Person(
        storable(_text(by), limit=LONGEST_ACTOR), storable(_text(reason), limit=LONGEST_REASON)
    )


def _text(value: object) -> str:
    try:
        return "" if value is None else str(value)
    except Exception:  # An object whose str() fails must not prevent the action.
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
