"""Reports of running attempts, on SQLite: log lines, starts and progress."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import LogLine, Note
from taskqueue.engine.sqlite.values import ago, clock, rows, stored

INSERT_LOG = """
INSERT INTO taskqueue_tasklog (task_id, attempt, logged_at, level, logger, message)
SELECT task_id, attempt, %s, %s, %s, %s
FROM taskqueue_lease
WHERE id = %s AND status = 'running'
"""

NOTE_LEASES = """
UPDATE taskqueue_lease
SET started_at = COALESCE(taskqueue_lease.started_at, json_extract(note.value, '$[1]')),
    progress = COALESCE(json_extract(note.value, '$[2]'), taskqueue_lease.progress),
    progress_message = COALESCE(json_extract(note.value, '$[3]'), taskqueue_lease.progress_message),
    progress_detail = CASE
        WHEN json_extract(note.value, '$[2]') IS NULL THEN taskqueue_lease.progress_detail
        ELSE json_extract(note.value, '$[4]')
    END,
    progressed_at = CASE
        WHEN json_extract(note.value, '$[2]') IS NULL THEN taskqueue_lease.progressed_at ELSE %s
    END
FROM json_each(%s) AS note
WHERE taskqueue_lease.id = json_extract(note.value, '$[0]') AND taskqueue_lease.status = 'running'
"""

NOTE_TASKS = """
UPDATE taskqueue_task
SET started_at = lease.started_at
FROM json_each(%s) AS note
JOIN taskqueue_lease AS lease ON lease.id = json_extract(note.value, '$[0]')
WHERE lease.status = 'running'
    AND taskqueue_task.id = lease.task_id
    AND taskqueue_task.started_at IS NULL
"""


def insert_logs(connection: BaseDatabaseWrapper, lines: Sequence[LogLine]) -> None:
    moment = clock()
    said = [
        (ago(moment, line.age), line.level, line.logger, line.message, line.lease_id)
        for line in lines
    ]
    with connection.cursor() as cursor:
        cursor.executemany(INSERT_LOG, said)


def write_notes(connection: BaseDatabaseWrapper, notes: Sequence[Note]) -> None:
    moment = clock()
    packed = rows(
        (note.lease_id, ago(moment, note.started), note.progress, note.message, note.detail)
        for note in notes
    )
    with connection.cursor() as cursor:
        cursor.execute(NOTE_LEASES, (stored(moment), packed))
        cursor.execute(NOTE_TASKS, (packed,))
