"""Renewing leases and finding those that ran out, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Held, Renewal, StopRequest
from taskqueue.engine.statement import change, fetch

# Each lease is found by LATERAL, as in `record`.
#
# Locks: leases by id, skipping those that are being recorded at this moment.
RENEW = """
WITH held AS MATERIALIZED (
    SELECT lease.id, ping.seconds, ping.started
    FROM (
        SELECT *
        FROM unnest(%s::bigint[], %s::float8[], %s::float8[]) AS ping (lease_id, seconds, started)
        ORDER BY lease_id
    ) AS ping
    JOIN LATERAL (
        SELECT id
        FROM taskqueue_lease
        WHERE id = ping.lease_id AND finished_at IS NULL
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS lease ON lease.id = ping.lease_id
)
UPDATE taskqueue_lease AS lease
SET expires_at = clock_timestamp() + held.seconds * interval '1 second',
    started_at = COALESCE(
        lease.started_at, clock_timestamp() - held.started * interval '1 second'
    )
FROM held
WHERE lease.id = held.id
RETURNING
    lease.id, lease.stop_requested_at IS NOT NULL, lease.stop_requested_by, lease.stop_reason
"""

STATUSES = """
SELECT lease.id, lease.status
FROM unnest(%s::bigint[]) AS missing (lease_id)
CROSS JOIN LATERAL (
    SELECT id, status FROM taskqueue_lease WHERE id = missing.lease_id LIMIT 1
) AS lease
"""

# Locks: leases by id.
SEE_STOPS = """
WITH held AS MATERIALIZED (
    SELECT lease.id
    FROM (SELECT * FROM unnest(%s::bigint[]) AS seen (lease_id) ORDER BY lease_id) AS seen
    JOIN LATERAL (
        SELECT id
        FROM taskqueue_lease
        WHERE id = seen.lease_id AND finished_at IS NULL AND stop_seen_at IS NULL
        LIMIT 1
        FOR UPDATE
    ) AS lease ON lease.id = seen.lease_id
)
UPDATE taskqueue_lease AS lease
SET stop_seen_at = clock_timestamp()
FROM held
WHERE lease.id = held.id
"""


def renew(connection: BaseDatabaseWrapper, held: Sequence[Held]) -> Renewal:
    """Extend leases, and bring what was asked of them."""
    rows = fetch(connection, RENEW, tuple(map(list, zip(*held, strict=True))))
    renewed = frozenset(row[0] for row in rows)
    stops = tuple(StopRequest(row[0], row[2], row[3]) for row in rows if row[1])
    missing = [lease.lease_id for lease in held if lease.lease_id not in renewed]
    statuses: dict[int, str] = {}
    if missing:
        statuses = {row[0]: row[1] for row in fetch(connection, STATUSES, (missing,))}
    return Renewal(
        renewed=renewed,
        ended=frozenset(id for id in missing if statuses.get(id) != "running"),
        succeeded=frozenset(id for id in missing if statuses.get(id) == "succeeded"),
        stops=stops,
    )


def see_stops(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> None:
    """Acknowledge stop requests: from here on these attempts cannot succeed."""
    change(connection, SEE_STOPS, (list(lease_ids),))
