"""Insert the partitions, limiters and limits that a task names and that do not exist yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.placement import lane_of, limiter_of
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import as_uuid, select
from taskqueue.engine.limits.claimant import Claimant
from taskqueue.engine.limits.lanes import lane_from
from taskqueue.engine.statement import Statement
from taskqueue.models import Limit, Limiter, LimitNote, Partition

# The limiters of the claiming worker and its host, by lane.
Own = Mapping[str, tuple[str, ...]]

# The most notes that are read at once: an enqueue of many tasks writes one for each.
MOST_NOTES = 5000

# One ready task of each of these partitions.
FIRST_TASKS = Statement(
    postgresql="""
        SELECT asked.id, task.queue_name, task.limits::text
        FROM unnest(%(partitions)s::uuid[]) AS asked (id)
        CROSS JOIN LATERAL (
            SELECT queue_name, limits
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2 AND partition = asked.id
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ) AS task
    """,
    sqlite="""
        SELECT asked.value, task.queue_name, task.limits
        FROM json_each(%(partitions)s) AS asked
        CROSS JOIN taskqueue_task AS task ON task.id = (
            SELECT id
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2 AND partition = asked.value
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        )
    """,
)


def own_limiters(
    connection: BaseDatabaseWrapper, claimant: Claimant, lanes: Iterable[tuple[str, str]]
) -> Own:
    """Return the limiters of a worker and its host, by lane; missing ones are made."""
    found: dict[str, tuple[str, ...]] = {}
    wanted: dict[UUID, tuple[str, str]] = {}
    for text in {text for _, text in lanes}:
        pairs = [(name, claimant.own_key(per)) for name, per in lane_from(text).per]
        ids = [limiter_of(*pair) for pair in pairs]
        wanted |= zip(ids, pairs, strict=True)
        found[text] = tuple(id.hex for id in ids)
    if wanted:
        rows = Limiter.objects.using(connection.alias).filter(id__in=list(wanted))
        with orm_transaction(connection):
            if rows.count() < len(wanted):
                make_limiters(connection, wanted.values())
    return found


def make_missing(connection: BaseDatabaseWrapper, subjects: Sequence[str]) -> None:
    """Make the partitions of these notes, and their limits and limiters.

    A note without a task is deleted: the task is no longer ready, or the note is about a limiter
    that was pruned. The notes were read before the tasks, so the task of each note was visible if
    it was still there.
    """
    if not subjects:
        return
    notes = LimitNote.objects.using(connection.alias).filter(
        subject__in=[as_uuid(subject) for subject in subjects]
    )
    with orm_transaction(connection):
        seen: dict[str, list[int]] = {}
        for id, subject in notes.values_list("id", "subject")[:MOST_NOTES]:
            seen.setdefault(subject.hex, []).append(id)
        found = select(connection, FIRST_TASKS, partitions=sorted(subjects))
        specs = {as_uuid(row[0]).hex: (row[1], json.loads(row[2])) for row in found}
        datas = [data for _, data in specs.values()]
        _make_limits(connection, [each for data in datas for each in data.get("limits", ())])
        make_limiters(
            connection, [(each["name"], each["key"]) for data in datas for each in _keyed(data)]
        )
        rows = [
            Partition(
                id=as_uuid(id),
                queue_name=queue_name,
                lane=lane_of(data),
                limits={name: value for name, value in data.items() if name != "cost"},
                limiters=[limiter_of(each["name"], each["key"]).hex for each in _keyed(data)],
            )
            for id, (queue_name, data) in sorted(specs.items())
        ]
        Partition.objects.using(connection.alias).bulk_create(rows, ignore_conflicts=True)
        gone = [id for subject, ids in seen.items() if subject not in specs for id in ids]
        if gone:
            # Does not wait for other sessions that delete some of these notes.
            held = notes.filter(id__in=gone).select_for_update(skip_locked=True)
            notes.filter(id__in=list(held.values_list("id", flat=True))).delete()


def restore_limiters(connection: BaseDatabaseWrapper, datas: Sequence[Mapping[str, Any]]) -> None:
    """Make the limiters of partitions again that were pruned while nothing ran under them."""
    if not datas:
        return
    with orm_transaction(connection):
        _make_limits(connection, [each for data in datas for each in data.get("limits", ())])
        make_limiters(
            connection, [(each["name"], each["key"]) for data in datas for each in _keyed(data)]
        )


def _make_limits(connection: BaseDatabaseWrapper, limits: Iterable[Mapping[str, Any]]) -> None:
    """Make the missing limits, with the numbers that a task carries."""
    named = {each["name"]: each for each in limits}
    columns = ("per", "concurrency", "rate", "seconds", "smooth")
    rows = [
        Limit(name=name, **{column: each[column] for column in columns if column in each})
        for name, each in sorted(named.items())
    ]
    Limit.objects.using(connection.alias).bulk_create(rows, ignore_conflicts=True)


def make_limiters(connection: BaseDatabaseWrapper, wanted: Iterable[tuple[str, str]]) -> None:
    """Make limiters by limit name and key. Existing ones stay as they are."""
    pairs = sorted(set(wanted))
    limits = Limit.objects.using(connection.alias).filter(name__in={name for name, _ in pairs})
    ids = dict(limits.values_list("name", "id"))
    rows = [
        Limiter(id=limiter_of(name, key), limit_id=ids[name], key=key)
        for name, key in pairs
        if name in ids
    ]
    rows.sort(key=lambda row: row.id)
    Limiter.objects.using(connection.alias).bulk_create(rows, ignore_conflicts=True)


def _keyed(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the limits whose limiter does not depend on the worker that claims."""
    return [each for each in data.get("limits", ()) if each["per"] == "key"]
