"""Turns of workers to run the doctor, and the findings that are kept.

Workers take turns: each examination is by one worker, on its host. Some findings, such as a wrong
clock, depend on the host: those of other hosts are kept until these are examined again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for, execute
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Examination, Worker
from taskqueue.models.worker import WorkerStatus

# Seconds between two examinations.
EVERY = 600
# Seconds after which no worker seems to run the doctor any more.
LATE = 3 * EVERY
# How long the findings of a host are kept that no worker examines any more.
KEPT_FOR_HOST = timedelta(hours=1)
# The most findings that are kept.
MOST = 50

IS_REQUESTED = Fact.of("""
    EXISTS (
        SELECT 1
        FROM taskqueue_examination
        WHERE requested_at IS NOT NULL AND (begun_at IS NULL OR requested_at > begun_at)
    )
""")
IS_OLD = Fact.of(f"""
    NOT EXISTS (
        SELECT 1
        FROM taskqueue_examination
        WHERE begun_at IS NOT NULL AND {{since begun_at}} < {EVERY}
    )
""")  # noqa: S608  (of constants)
# Locks the row, or inserts it. A worker that waited for the lock finds that it is not due.
TAKE_TURN = Statement.of(f"""
INSERT INTO taskqueue_examination AS examination (id, begun_at, worker_name, host, findings)
VALUES (1, {{now}}, '', '', {{json findings}})
ON CONFLICT (id) DO UPDATE SET begun_at = excluded.begun_at
WHERE examination.begun_at IS NULL OR examination.requested_at > examination.begun_at
    OR {{since examination.begun_at}} >= {EVERY}
""")  # noqa: S608  (of constants)
REQUEST = Statement.of("""
INSERT INTO taskqueue_examination (id, requested_at, worker_name, host, findings)
VALUES (1, {now}, '', '', {json findings})
ON CONFLICT (id) DO UPDATE SET requested_at = excluded.requested_at
""")


class Note(TypedDict):
    """A finding as it is kept."""

    check: str
    # `warning` or `problem`.
    severity: str
    subject: str
    seen: str
    remedy: str
    # The data to translate both.
    words: dict[str, Any]
    # Whether a notice that is judged in each reading says the same.
    is_notice: bool
    # The host on which it was found; empty if any host would find the same.
    host: str
    # When it was first found, in examinations one after the other, and last, as text.
    since: str
    at: str


def take_turn(connection: BaseDatabaseWrapper) -> bool:
    """Return whether this worker is to examine: it is time, and no other one has begun."""
    return execute(connection, TAKE_TURN, findings="[]") == 1


def request_examination(connection: BaseDatabaseWrapper) -> None:
    """Have a worker run the doctor soon."""
    execute(connection, REQUEST, findings="[]")


def keep(
    connection: BaseDatabaseWrapper, found: Iterable[Note], *, worker_name: str, host: str
) -> None:
    """Replace the kept findings by those of this examination."""
    with orm_transaction(connection):
        rows = Examination.objects.using(connection.alias)
        row = rows.select_for_update().filter(id=1).first()
        now = dialect_for(connection).now(connection)
        before = _of_hosts(connection, row.findings if row else [])
        findings = merged(before, list(found), host=host, now=now)
        columns = {
            "examined_at": now, "worker_name": worker_name, "host": host, "findings": findings,
        }  # fmt: skip
        rows.update_or_create(id=1, defaults=columns, create_defaults={**columns, "begun_at": now})


def _of_hosts(connection: BaseDatabaseWrapper, notes: Iterable[Note]) -> list[Note]:
    """Return the findings without those of hosts on which no worker is left to look again.

    Each deploy of containers has new hosts.
    """
    gone = (WorkerStatus.STOPPED, WorkerStatus.LOST)
    workers = Worker.objects.using(connection.alias).exclude(status__in=gone)
    hosts = {"", *workers.values_list("host", flat=True)}
    return [note for note in notes if note["host"] in hosts]


def merged(
    before: Iterable[Note], found: Iterable[Note], *, host: str, now: datetime
) -> list[Note]:
    """Return the findings to keep after an examination on a host, problems first."""
    known = {_key(note): note["since"] for note in before}
    moment = now.isoformat()
    new = [Note(**{**note, "since": known.get(_key(note), moment), "at": moment}) for note in found]
    others = [
        note
        for note in before
        if note["host"] not in ("", host)
        and datetime.fromisoformat(note["at"]) > now - KEPT_FOR_HOST
    ]
    return sorted([*new, *others], key=lambda note: note["severity"] != "problem")[:MOST]


def told_by(note: Mapping[str, Any]) -> str:
    """Return what distinguishes a finding from others about its subject; numbers may change."""
    text: str = note["words"]["text"] if has_words(note) else note["seen"]
    return text


def has_words(note: Mapping[str, Any]) -> bool:
    """Return whether the numbers in a finding's text are known.

    They are not known in findings of the system checks, of which several may share a subject: the
    id of the check.
    """
    return bool(note["words"].get("text"))


def _key(note: Mapping[str, Any]) -> tuple[str, ...]:
    """Return by what a finding is known again."""
    return note["check"], note["subject"], note["host"], told_by(note)
