"""Writing that workflows have moved, in one statement for all that one transaction advances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import array_of
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.sqlite.values import stored
from taskqueue.engine.statement import change, fetch

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
# Locks: workflows that the caller has locked. Wakes workers at commit, where any sleeps: the server
# shares a lock among all that notify. The plan is not kept: while there are few workflows, their
# index of statuses, which has the id too, looks as good as the key.
POSTGRESQL_MOVE = f"""
    WITH moved AS (
        UPDATE taskqueue_workflow AS workflow
        {_MOVE}
        FROM unnest(%(ids)s::uuid[], %(ended)s::int[]) AS row (id, ended)
        WHERE workflow.id = ANY (ARRAY[row.id])
    )
    SELECT pg_notify('taskqueue', %(payload)s)
    FROM taskqueue_worker
    WHERE is_idle AND %(wakes)s
    LIMIT 1
"""  # noqa: S608  (of constants)


def write_moves(
    connection: BaseDatabaseWrapper,
    moves: Sequence[tuple[UUID, int]],
    *,
    now: datetime,
    wakes: bool,
) -> None:
    """Count so many steps down in each locked workflow; `wakes`: there are tasks to claim now."""
    if is_sqlite(connection):
        if moves:
            rows = json.dumps([(id.hex, number) for id, number in moves])
            change(connection, SQLITE_MOVE, {"rows": rows, "now": stored(now)})
        return
    if not moves and not wakes:
        return
    parameters: dict[str, Any] = {
        "ids": array_of([id for id, _ in moves]),
        "ended": array_of([number for _, number in moves]),
        "now": now, "wakes": wakes, "payload": ANYWHERE,
    }  # fmt: skip
    fetch(connection, POSTGRESQL_MOVE, parameters)
