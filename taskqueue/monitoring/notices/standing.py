"""Read small tables and parts of them: pauses, idle or late schedules, tags, halts, alerts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.examinations import Note
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.engine.sqlite.values import clock, loaded, stored
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.reading import read

# The most paused definitions, inactive schedules, late ones, lanes of queues, heartbeats, halted
# sequences and acknowledged findings that are read.
MOST_PAUSES, MOST_RESTING, MOST_LATE, MOST_LANES, MOST_FAILING = 20, 20, 1_001, 1_000, 20
MOST_HALTED, MOST_ACKNOWLEDGED = 1_000, 200

# One statement, which also reads the current time. Each part is a small table, or reads an index up
# to a limit; lanes are found by a loose scan with one probe for each. The conditions are those of
# `Schedule.paused_itself` and `OVERDUE`.
_STANDING = """
WITH RECURSIVE lane (queue_name, lane, place) AS (
    SELECT queue_name, lane, 1
    FROM (
        SELECT queue_name, lane
        FROM taskqueue_partition
        WHERE state = 'open'
        ORDER BY queue_name, lane
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT step.queue_name, step.lane, lane.place + 1
    FROM lane
    JOIN taskqueue_partition AS step ON step.id = (
        SELECT id
        FROM taskqueue_partition
        WHERE state = 'open' AND (queue_name, lane) > (lane.queue_name, lane.lane)
        ORDER BY queue_name, lane
        LIMIT 1
    )
    WHERE lane.place < %(lanes)s
)
SELECT 'now', '', {now}, {none}, '', '', 0, {no_id}, ''
UNION ALL
SELECT 'pause', name, paused_at, paused_until, paused_by, pause_reason, 0, {no_id}, ''
FROM (
    SELECT name, paused_at, paused_until, paused_by, pause_reason
    FROM taskqueue_pause
    ORDER BY name
    LIMIT %(pauses)s
) AS pause
UNION ALL
SELECT 'resting', name, paused_at, {none}, trouble, '', failures_in_row, id, ''
FROM (
    SELECT id, name, paused_at, trouble, failures_in_row
    FROM taskqueue_schedule
    WHERE is_enabled AND removed_at IS NULL AND (
        (paused_at IS NULL AND trouble <> '')
        OR (
            paused_at IS NOT NULL AND paused_by = '' AND failures_in_row >= pause_after_failures
        )
    )
    ORDER BY id
    LIMIT %(resting)s
) AS resting
UNION ALL
SELECT 'late', name, next_at, {none}, trouble, '', 0, {no_id}, ''
FROM (
    SELECT name, next_at, trouble
    FROM taskqueue_schedule
    WHERE next_at IS NOT NULL AND is_enabled AND removed_at IS NULL AND paused_at IS NULL
        AND next_at < {late}
    ORDER BY next_at
    LIMIT %(overdue)s
) AS late
UNION ALL
SELECT
    'examined', worker_name, examined_at, {none}, host, '', 0, {no_id}, CAST(findings AS text)
FROM taskqueue_examination
WHERE examined_at IS NOT NULL
UNION ALL
SELECT 'acknowledged', subject, {none}, {none}, '', '', 0, {no_id}, ''
FROM (
    SELECT incident.subject
    FROM taskqueue_incident AS incident
    JOIN taskqueue_alertrule AS rule ON rule.id = incident.rule_id
    WHERE NOT incident.is_settled AND incident.status = 'firing'
        AND incident.acknowledged_at IS NOT NULL AND rule.kind = 'doctor'
    ORDER BY incident.id
    LIMIT %(acknowledged)s
) AS acknowledged
UNION ALL
SELECT 'heartbeat', name, failing_since, {none}, failure, '', 0, {no_id}, ''
FROM (
    SELECT name, failing_since, failure
    FROM taskqueue_alertrule
    WHERE failing_since IS NOT NULL AND next_at IS NOT NULL
    ORDER BY name
    LIMIT %(failing)s
) AS heartbeat
UNION ALL
SELECT
    'halted', CAST(sequence.holder AS text), COALESCE(task.finished_at, sequence.changed_at),
    {none}, '', '',
    CASE WHEN EXISTS (
        SELECT 1
        FROM taskqueue_task AS behind
        WHERE behind.partition = sequence.id AND behind.status = 'ready' AND behind.route = 2
    ) THEN 1 ELSE 0 END,
    {no_id}, ''
FROM (
    SELECT id, holder, changed_at
    FROM taskqueue_partition
    WHERE state = 'halted'
    ORDER BY id
    LIMIT %(halted)s
) AS sequence
LEFT JOIN taskqueue_task AS task ON task.id = sequence.holder
WHERE sequence.holder IS NOT NULL
UNION ALL
SELECT 'lane', queue_name, {none}, {none}, lane, '', 0, {no_id}, ''
FROM lane
WHERE lane <> ''
"""
STANDING = Statement(
    postgresql=_STANDING.format(
        now="statement_timestamp()",
        none="NULL::timestamptz",
        no_id="NULL::bigint",
        late="statement_timestamp() - %(late)s::interval",
    ),
    sqlite=_STANDING.format(now="%(now)s", none="NULL", no_id="NULL", late="%(late_text)s"),
)


class Paused(NamedTuple):
    """A pause that has not ended; of everything if it has no name."""

    name: str
    since: datetime
    until: datetime | None
    by: str
    reason: str


class Resting(NamedTuple):
    """A schedule that paused itself, or cannot be served."""

    id: int
    name: str
    # None if it is not paused, but in trouble.
    paused_at: datetime | None
    trouble: str
    failures: int


class Overdue(NamedTuple):
    """A schedule that is due and that no worker has served."""

    name: str
    since: datetime
    seconds: float
    trouble: str


class Examined(NamedTuple):
    """The last time that a worker ran the doctor."""

    worker_name: str
    at: datetime
    host: str


class Heartbeat(NamedTuple):
    """The rule of a heartbeat whose URL cannot be called, so the receiver gets no call."""

    rule: str
    since: datetime
    # Why the first call failed, without the address.
    failure: str


class Halted(NamedTuple):
    """A sequence that is halted because a task of it failed."""

    # The failed task.
    task_id: UUID
    since: datetime
    # Whether tasks wait behind it.
    has_waiting: bool


class Lane(NamedTuple):
    """The tags that tasks of a queue require."""

    queue_name: str
    tags: frozenset[str]


@dataclass
class Standing:
    """The contents of small tables at one moment, by the database's clock."""

    at: datetime
    pauses: list[Paused] = field(default_factory=list)
    resting: list[Resting] = field(default_factory=list)
    # The schedule that has been due for longest comes first.
    overdue: list[Overdue] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    examined: Examined | None = None
    # What the doctor found then, and the subjects that people have acknowledged as alerts.
    notes: list[Note] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    heartbeats: list[Heartbeat] = field(default_factory=list)
    # The sequence that has been halted for longest comes first.
    halted: list[Halted] = field(default_factory=list)


def read_standing() -> Standing:
    """Return everything in one statement."""
    rows = read(
        STANDING, pauses=MOST_PAUSES, resting=MOST_RESTING, overdue=MOST_LATE, lanes=MOST_LANES,
        acknowledged=MOST_ACKNOWLEDGED, failing=MOST_FAILING, halted=MOST_HALTED + 1,
        late=OVERDUE, late_text=stored(clock() - OVERDUE),
    )  # fmt: skip
    [at] = [_moment(row[2]) for row in rows if row[0] == "now"]
    found = Standing(at)
    for kind, *row in rows:
        _add(found, kind, row)
    found.overdue.sort(key=lambda overdue: overdue.since)
    found.halted.sort(key=lambda halted: halted.since)
    return found


def _add(found: Standing, kind: str, row: Sequence[Any]) -> None:
    name, since, until, text, reason, number, key, words = row
    if kind == "pause":
        pause = Paused(name, _moment(since), loaded(until), text, reason)
        # The row of a pause that is over is deleted soon.
        if pause.until is None or pause.until > found.at:
            found.pauses.append(pause)
    elif kind == "resting":
        found.resting.append(Resting(key, name, loaded(since), text, number))
    elif kind == "late":
        due = _moment(since)
        found.overdue.append(Overdue(name, due, (found.at - due).total_seconds(), text))
    elif kind == "examined":
        found.examined = Examined(name, _moment(since), text)
        found.notes += json.loads(words)
    elif kind == "acknowledged":
        found.acknowledged.add(name)
    elif kind == "heartbeat":
        found.heartbeats.append(Heartbeat(name, _moment(since), text))
    elif kind == "halted":
        found.halted.append(Halted(as_uuid(name), _moment(since), bool(number)))
    elif kind == "lane" and (tags := json.loads(text).get("tags")):
        found.lanes.append(Lane(name, frozenset(tags)))


def _moment(value: Any) -> datetime:
    moment = loaded(value)
    assert moment is not None
    return moment
