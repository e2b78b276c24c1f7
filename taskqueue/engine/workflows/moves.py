"""Record that workflows have advanced, in one statement for all of a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import array_of
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.sqlite.values import stored
from taskqueue.engine.statement import change, fetch
from taskqueue.engine.workflows.releases import (
    FIND_BLOCKED,
    MAKE_READY,
    RUN,
    Pending,
    release_steps,
)

_MOVE = """
    SET open_steps = open_steps - row.ended, moved_at = %(now)s, trouble = ''
"""
SQLITE_MOVE = f"""
    UPDATE taskqueue_workflow AS workflow
    {_MOVE}
    FROM (
        SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS ended
        FROM json_each(%(rows)s)
    ) AS row
    WHERE workflow.id = row.id
"""  # noqa: S608  (of constants)
# Parts of the statements below. A crash of the server may undo what a worker did on its own: it
# follows from the notes, which then exist again, and everything committed later is lost as well.
_CLOCK = f"""
    SELECT CASE WHEN %(is_lazy)s THEN set_config('synchronous_commit', 'off', true) END
    WHERE {KEEPS_PLAN}
"""
_OWN = """
    SELECT workflow.place, row.ended
    FROM clock
    CROSS JOIN unnest(%(ids)s::uuid[], %(ended)s::int[]) AS row (id, ended)
    CROSS JOIN LATERAL (
        SELECT ctid AS place
        FROM taskqueue_workflow
        WHERE id >= row.id AND id <= row.id
        ORDER BY id
        LIMIT 1
    ) AS workflow
"""
_MOVED = f"""
    UPDATE taskqueue_workflow AS workflow
    {_MOVE}
    FROM own AS row
    WHERE workflow.ctid = row.place
"""
_WAKE = """
    SELECT pg_notify('taskqueue', %(payload)s)
    FROM taskqueue_worker
    WHERE is_idle AND %(wakes)s
    LIMIT 1
"""
# Locks: workflows that the caller has locked. Notifies workers at commit, but only if any sleeps,
# because the server shares one lock among all sessions that notify. The server keeps the plan: rows
# are found by the key. The index of statuses also contains the id and looks as good while there are
# few rows, but has another order.
POSTGRESQL_MOVE = f"""
    WITH clock AS MATERIALIZED ({_CLOCK}), own AS MATERIALIZED ({_OWN}), moved AS ({_MOVED})
    {_WAKE}
"""
# Locks: those of `MOVE`, and those of a release.
RELEASE_AND_MOVE = f"""
    WITH clock AS MATERIALIZED ({_CLOCK}), own AS MATERIALIZED ({_OWN}), moved AS ({_MOVED}),
    run AS ({RUN}), blocked AS MATERIALIZED ({FIND_BLOCKED}), ready AS ({MAKE_READY}),
    woken AS MATERIALIZED ({_WAKE})
    SELECT true, queue_name FROM ready
    UNION ALL
    SELECT false, NULL FROM woken
"""  # noqa: S608  (of constants)


def write_moves(
    connection: BaseDatabaseWrapper,
    moves: Sequence[tuple[UUID, int]],
    *,
    now: datetime,
    wakes: bool,
    pending: Pending,
    is_lazy: bool,
) -> set[str | None]:
    """Subtract numbers from the open steps of locked workflows, and release pending steps.

    Return the queues as `release_steps` does. `wakes`: there are other tasks to claim now.
    `is_lazy`: losing the transaction in a crash of the server does no harm.
    """
    if is_sqlite(connection):
        queues = release_steps(connection, pending, now=now) if pending.steps else set()
        if moves:
            rows = json.dumps([(id.hex, number) for id, number in moves])
            change(connection, SQLITE_MOVE, {"rows": rows, "now": stored(now)})
        return queues
    if not (moves or wakes or pending.steps):
        return set()
    with kept_plan(connection) as series:
        parameters: dict[str, Any] = {
            "ids": array_of([id for id, _ in moves]),
            "ended": array_of([number for _, number in moves]),
            "now": now, "wakes": wakes, "payload": ANYWHERE, "is_lazy": is_lazy, "series": series,
        }  # fmt: skip
        if not pending.steps:
            fetch(connection, POSTGRESQL_MOVE, parameters)
            return set()
        parameters["wakes"] = wakes or bool(pending.plain)
        for name, value in pending.parameters().items():
            parameters[name] = array_of(value)
        found = fetch(connection, RELEASE_AND_MOVE, parameters)
        return {queue for is_ready, queue in found if is_ready}
