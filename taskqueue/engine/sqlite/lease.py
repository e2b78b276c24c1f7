"""Renewing leases and finding those that ran out, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Held, Renewal, StopRequest
from taskqueue.engine.sqlite.values import ago, clock, rows, stored

# The column itself is returned, not whether it is NULL: behind UPDATE ... FROM, SQLite 3.40 answers
# `IS NOT NULL` with 1 for a NULL, and every body that was pinged would be told to stop.
RENEW = """
UPDATE taskqueue_lease
SET expires_at = json_extract(ping.value, '$[1]'),
    started_at = COALESCE(taskqueue_lease.started_at, json_extract(ping.value, '$[2]'))
FROM json_each(%s) AS ping
WHERE taskqueue_lease.id = json_extract(ping.value, '$[0]') AND taskqueue_lease.status = 'running'
RETURNING id, stop_requested_at, stop_requested_by, stop_reason
"""

STATUSES = """
SELECT id, status FROM taskqueue_lease WHERE id IN (SELECT value FROM json_each(%s))
"""

SEE_STOPS = """
UPDATE taskqueue_lease
SET stop_seen_at = %s
WHERE id IN (SELECT value FROM json_each(%s)) AND status = 'running' AND stop_seen_at IS NULL
"""


def renew(connection: BaseDatabaseWrapper, held: Sequence[Held]) -> Renewal:
    moment = clock()
    packed = rows(
        (
            lease.lease_id,
            stored(moment + timedelta(seconds=lease.seconds)),
            ago(moment, lease.started),
        )
        for lease in held
    )
    with connection.cursor() as cursor:
        cursor.execute(RENEW, (packed,))
        leases = cursor.fetchall()
        renewed = frozenset(row[0] for row in leases)
        missing = [lease.lease_id for lease in held if lease.lease_id not in renewed]
        statuses: dict[int, str] = {}
        if missing:
            cursor.execute(STATUSES, (json.dumps(missing),))
            statuses = dict(cursor.fetchall())
    return Renewal(
        renewed=renewed,
        ended=frozenset(id for id in missing if statuses.get(id) != "running"),
        succeeded=frozenset(id for id in missing if statuses.get(id) == "succeeded"),
        stops=tuple(StopRequest(row[0], row[2], row[3]) for row in leases if row[1] is not None),
    )


def see_stops(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SEE_STOPS, (stored(clock()), json.dumps(list(lease_ids))))
