"""Fire groups: the collected events of a due group become a task.

A group is due when it is full, when no event has come for its grace period, or when its oldest
event has waited for the longest allowed delay. A session that fires a group locks the group's first
row; other sessions then skip the group. Events that are committed later join the next batch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.declarations.batch import BRACKETS
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.payloads import Payload
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Collected

logger = logging.getLogger("taskqueue.engine")

HAS_COLLECTED = Fact.of("EXISTS (SELECT 1 FROM taskqueue_collected)")
# The most batches of one turn, and of one call of the verb.
MOST_BATCHES = 500

# The due groups after a given one, in order. A loose scan of the index: for each group one probe of
# its first row and one of its last, however many there are. Events are counted only if these two
# are as far apart as a full batch, and only up to that number.
_DUE = """
    WITH RECURSIVE head (name, group_key, id) AS (
        SELECT name, group_key, id
        FROM (
            SELECT name, group_key, id
            FROM taskqueue_collected
            WHERE (name, group_key) > (%(name)s, %(group)s)
            ORDER BY name, group_key, id
            LIMIT 1
        ) AS first_group
        UNION ALL
        SELECT following.name, following.group_key, following.id
        FROM head
        {following}
    )
    SELECT oldest.id, oldest.name, oldest.group_key, CAST(oldest.spec AS text)
    FROM head
    {ends}
    WHERE {{since oldest.collected_at}} >= oldest.max_delay
        OR {{since newest.collected_at}} >= oldest.grace
        OR newest.id - oldest.id >= oldest.max_size - 1 AND {is_full}
    LIMIT %(limit)s
"""
# Each row is found by its key, whatever the statistics say: LATERAL with a LIMIT cannot become
# another join. The oldest event is found by the index of groups: by its id alone, that whole index
# would be read if the statistics describe an empty table. A group is a range, not a pair of equal
# values. For equal values PostgreSQL knows that their order is that of the ids, and while the
# statistics show few groups it would look for the newest event of a group row by row, from the
# newest event of all. Only the index of groups has the order of a range. SQLite knows neither
# LATERAL nor columns in an OFFSET.
DUE = Statement(
    postgresql=Statement.of(
        _DUE.format(
            following="""CROSS JOIN LATERAL (
            SELECT name, group_key, id
            FROM taskqueue_collected
            WHERE (name, group_key) > (head.name, head.group_key)
            ORDER BY name, group_key, id
            LIMIT 1
        ) AS following""",
            ends="""CROSS JOIN LATERAL (
        SELECT *
        FROM taskqueue_collected
        WHERE (name, group_key, id) >= (head.name, head.group_key, head.id)
        ORDER BY name, group_key, id
        LIMIT 1
    ) AS oldest
    CROSS JOIN LATERAL (
        SELECT id, collected_at
        FROM taskqueue_collected
        WHERE (name, group_key) >= (head.name, head.group_key)
            AND (name, group_key) <= (head.name, head.group_key)
        ORDER BY name DESC, group_key DESC, id DESC
        LIMIT 1
    ) AS newest""",
            is_full="""EXISTS (
            SELECT 1
            FROM taskqueue_collected AS other
            WHERE (other.name, other.group_key, other.id)
                    >= (oldest.name, oldest.group_key, oldest.id)
                AND (other.name, other.group_key) <= (oldest.name, oldest.group_key)
            ORDER BY other.name, other.group_key, other.id
            LIMIT 1 OFFSET oldest.max_size - 1
        )""",
        )
    ).postgresql,
    sqlite=Statement.of(
        _DUE.format(
            following="""JOIN taskqueue_collected AS following ON following.id = (
            SELECT other.id
            FROM taskqueue_collected AS other
            WHERE (other.name, other.group_key) > (head.name, head.group_key)
            ORDER BY other.name, other.group_key, other.id
            LIMIT 1
        )""",
            ends="""CROSS JOIN taskqueue_collected AS oldest ON oldest.id = head.id
    CROSS JOIN taskqueue_collected AS newest ON newest.id = (
        SELECT other.id
        FROM taskqueue_collected AS other
        WHERE other.name = head.name AND other.group_key = head.group_key
        ORDER BY other.id DESC
        LIMIT 1
    )""",
            is_full="""oldest.max_size <= (
            SELECT count(*)
            FROM taskqueue_collected AS other
            WHERE other.name = oldest.name AND other.group_key = oldest.group_key
        )""",
        )
    ).sqlite,
)


@dataclass(frozen=True)
class Fired:
    """A batch that was enqueued."""

    name: str
    task_id: str
    events: int
    # Whether the group may have more events waiting.
    is_full: bool


def fire_due(connection: BaseDatabaseWrapper) -> list[Fired]:
    """Enqueue a batch of each due group, up to the bound of a turn.

    Groups that are left to a newer version or to other sessions are passed over, however many they
    are.
    """
    fired: list[Fired] = []
    strange: dict[str, str] = {}
    behind = {"name": "", "group": ""}
    while (limit := MOST_BATCHES - len(fired)) > 0:
        with orm_transaction(connection):
            due = select(connection, DUE, **behind, limit=limit)
        for first, name, _, spec in due:
            try:
                EnqueueSpec.from_json(json.loads(spec))
            except ValueError as error:
                strange[name] = str(error)
                continue
            if (batch := _fire(connection, first)) is not None:
                fired.append(batch)
        if len(due) < limit:
            break
        behind = {"name": due[-1][1], "group": due[-1][2]}
    for name, reason in strange.items():
        logger.error("Batch left to a newer version name=%s reason=%s", name, reason)
    return fired


def fire_group(connection: BaseDatabaseWrapper, name: str, group: str) -> list[Fired]:
    """Enqueue the events that a group has collected so far, whether it is due or not.

    At most `MOST_BATCHES` batches: another call continues.
    """
    if not (is_storable(name) and is_storable(group)):
        return []
    rows = Collected.objects.using(connection.alias).filter(name=name, group=group)
    ids = rows.order_by("id").values_list("id", flat=True)
    last = ids.last()
    found: list[Fired] = []
    while last is not None and len(found) < MOST_BATCHES:
        first = ids.first()
        batch = None if first is None or first > last else _fire(connection, first)
        if batch is None:
            break
        found.append(batch)
    return found


def _fire(connection: BaseDatabaseWrapper, first_id: int) -> Fired | None:
    """Enqueue the first events of a group, unless another session is doing so.

    Locks: the group's first row, then the others by id; locked rows are left.
    """
    with orm_transaction(connection):
        rows = Collected.objects.using(connection.alias)
        # Found by its id: with a LIMIT, the next row would be locked if another session holds the
        # first.
        first = rows.filter(id=first_id).select_for_update(skip_locked=True).first()
        if first is None:
            return None
        try:
            spec = EnqueueSpec.from_json(first.spec)
        except ValueError as error:
            logger.error("Batch left to a newer version name=%s reason=%s", first.name, error)
            return None
        own = rows.filter(name=first.name, group=first.group).order_by("id")
        found = list(own.select_for_update(skip_locked=True)[: first.max_size])
        chosen = list(_fitting(found, first.max_bytes))
        rows.filter(id__in=[row.id for row in chosen]).delete()
        events = ",".join(row.event for row in chosen)
        args = f"[[{events}]]"
        payload = Payload(uuid7_hex(), args, "{}", None, spec.place(args, "{}"))
        dialect_for(connection).insert(connection, spec, payload)
    is_full = len(chosen) == first.max_size or len(chosen) < len(found)
    return Fired(first.name, payload.id, len(chosen), is_full)


def _fitting(rows: Iterable[Any], most: int) -> Iterable[Any]:
    """Yield rows as long as their JSON list has at most `most` bytes."""
    left = most - BRACKETS
    for row in rows:
        left -= row.size + 1
        if left < -1:
            return
        yield row
