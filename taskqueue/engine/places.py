"""Places: a throttle or capacity of N has N unique keys; each admitted task holds one.

The unique index of keys makes the number exact, however many enqueues run at once. But an INSERT
would wait if another, uncommitted transaction has taken its place, and two transactions that take
several places each could deadlock. So on PostgreSQL, an enqueue first tries to take an advisory
lock on the place, which lasts as long as the transaction, and skips places that others have locked:
uncommitted tasks count, and no enqueue waits for them. The lock is only a hint; the index decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import PENDING
from taskqueue.engine.call_counts import count_turned_away
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.ends import cancel_waiting
from taskqueue.engine.holders import TRIES, enqueued_of, release_expired
from taskqueue.engine.payloads import Enqueued, Payload
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import CapacityReached, TaskQueueError
from taskqueue.models import Task
from taskqueue.models.call_count import TurnedAway

# Advisory locks need room in a table of the server, which has some thousand entries. A transaction
# that takes more places than this goes on without them.
MOST_LOCKED = 500

# Free places of each base, up to the wanted number, and whether an expired task still holds the
# key. Places are chosen at random, because otherwise all sessions would try the first one. With
# subqueries the planners have no choice but to look up each key; from a plain join they make a join
# over all keys, or over the table, if the statistics are old. The counter is a setting that ends
# with the transaction.
# Locks: the places, until the transaction ends; it never waits.
FREE = Statement(
    postgresql=f"""
WITH taken AS MATERIALIZED (
    SELECT COALESCE(NULLIF(current_setting('taskqueue.places', true), ''), '0')::integer AS number
), asked AS MATERIALIZED (
    SELECT base, wanted, sum(wanted) OVER (ORDER BY base) AS so_far
    FROM unnest(%(bases)s::text[], %(wanted)s::integer[]) AS own (base, wanted)
), free AS MATERIALIZED (
    SELECT asked.base, own.place, own.is_expired
    FROM taken
    CROSS JOIN asked
    CROSS JOIN LATERAL (
        SELECT drawn.place, drawn.is_expired
        FROM (
            SELECT places.place, holder.id IS NOT NULL AS is_expired
            FROM (
                SELECT asked.base || '#' || number AS place
                FROM generate_series(0, %(places)s::integer - 1) AS number
            ) AS places
            LEFT JOIN LATERAL (
                SELECT id, unique_until
                FROM taskqueue_task
                WHERE unique_key = places.place AND unique_scope = %(scope)s AND holds_unique_key
                LIMIT 1
            ) AS holder ON true
            WHERE holder.id IS NULL OR holder.unique_until <= clock_timestamp()
            ORDER BY random()
            OFFSET 0
        ) AS drawn
        WHERE taken.number + asked.so_far > {MOST_LOCKED}
            OR pg_try_advisory_xact_lock(29809, hashtext(%(scope)s || '#' || drawn.place))
        LIMIT asked.wanted
    ) AS own
)
SELECT
    base, place, is_expired,
    set_config(
        'taskqueue.places', (SELECT number + (SELECT count(*) FROM free) FROM taken)::text, true
    )
FROM free
""",  # noqa: S608  (a number)
    sqlite="""
WITH RECURSIVE numbers (number) AS (
    SELECT 0
    UNION ALL
    SELECT number + 1 FROM numbers WHERE number + 1 < %(places)s
), asked (base, wanted) AS (
    SELECT base.value, wanted.value
    FROM json_each(%(bases)s) AS base
    JOIN json_each(%(wanted)s) AS wanted ON wanted.key = base.key
), free (base, wanted, place, turn) AS (
    SELECT base, wanted, place, row_number() OVER (PARTITION BY base ORDER BY random())
    FROM (SELECT base, wanted, base || '#' || number AS place FROM asked, numbers) AS places
    WHERE NOT EXISTS (
        SELECT 1
        FROM taskqueue_task
        WHERE unique_key = places.place AND unique_scope = %(scope)s AND holds_unique_key
            AND (unique_until IS NULL OR unique_until > %(now)s)
    )
)
SELECT
    base, place,
    EXISTS (
        SELECT 1
        FROM taskqueue_task
        WHERE unique_key = free.place AND unique_scope = %(scope)s AND holds_unique_key
    )
FROM free
WHERE turn <= wanted
""",
)


class Places:
    """Takes the places for the tasks of one enqueue."""

    def __init__(self, connection: BaseDatabaseWrapper, spec: EnqueueSpec) -> None:
        self._connection = connection
        self._spec = spec
        # The results for further calls of this enqueue by key, none of which is admitted.
        self._full: dict[str, Enqueued] = {}
        self._dropped = 0  # Dropped calls that are not counted yet.

    def enqueue_many(self, payloads: Sequence[Payload]) -> list[Enqueued]:
        """Enqueue many calls at one moment: the first ones are admitted."""
        results: dict[str, Enqueued] = {}
        if self._spec.when_full != "replace":
            free = self._free(Counter(str(payload.unique_key) for payload in payloads))
            placed = [
                payload._replace(unique_key=free[base].pop())
                for payload in payloads
                if free.get(base := str(payload.unique_key))
            ]
            placed.sort(key=lambda payload: payload.unique_key or "")
            dialect = dialect_for(self._connection)
            results = {
                each.id: each for each in dialect.insert_keyed(self._connection, self._spec, placed)
            }
        for payload in sorted(payloads, key=lambda payload: payload.unique_key or ""):
            if payload.id not in results:
                results[payload.id] = self._enqueue(payload, base=str(payload.unique_key))
        self._count_dropped()
        return [results[payload.id] for payload in payloads]

    def enqueue(self, payload: Payload, *, base: str) -> Enqueued:
        """Insert a task in a free place of the key. If there is none, do what the spec says.

        Raises `CapacityReached` if the spec says to refuse the task.
        """
        enqueued = self._enqueue(payload, base=base)
        self._count_dropped()
        return enqueued

    def _enqueue(self, payload: Payload, *, base: str) -> Enqueued:
        if (known := self._full.get(base)) is not None:
            self._dropped += 1
            return known
        act: Callable[[Payload, str], Enqueued | None] = self._drop
        if self._spec.when_full != "drop":
            act = self._refuse if self._spec.when_full == "refuse" else self._replace
        for _try in range(TRIES):
            places = self._free({base: 1}).get(base)
            enqueued = self._insert(payload, places[0]) if places else act(payload, base)
            if enqueued is not None:
                return enqueued
        raise TaskQueueError(_(
            "The places of {base!r} of {unique_scope} changed {tries} times while this task was "
            "enqueued. Enqueue it again.",
            base=base, unique_scope=self._spec.unique_scope, tries=TRIES,
        ))  # fmt: skip

    def _free(self, wanted: Mapping[str, int]) -> dict[str, list[str]]:
        """Return free places of each base, as many as are wanted or as there are."""
        spec, bases = self._spec, sorted(wanted)
        rows = select(
            self._connection, FREE, bases=bases, wanted=[wanted[base] for base in bases],
            places=spec.places, scope=spec.unique_scope,
        )  # fmt: skip
        free: dict[str, list[str]] = {}
        for base, place, is_expired, *_rest in sorted(rows):
            if is_expired:
                release_expired(self._connection, spec.unique_scope, place)
            free.setdefault(base, []).append(place)
        return free

    def _count_dropped(self) -> None:
        is_throttle = self._spec.unique_for == "duration"
        what = TurnedAway.THROTTLED if is_throttle else TurnedAway.DROPPED
        count_turned_away(self._connection, self._spec.name, what, self._dropped)
        self._dropped = 0

    def _insert(self, payload: Payload, place: str) -> Enqueued | None:
        taken = payload._replace(unique_key=place)
        return dialect_for(self._connection).insert(self._connection, self._spec, taken)

    def _holders(self, base: str) -> QuerySet[Task]:
        keys = [f"{base}#{number}" for number in range(self._spec.places)]
        held = Task.objects.using(self._connection.alias).filter(holds_unique_key=True)
        return held.filter(unique_key__in=keys, unique_scope=self._spec.unique_scope)

    def _drop(self, payload: Payload, base: str) -> Enqueued | None:
        """Return the task that was admitted last."""
        holders = self._holders(base).only("status", "name", "enqueued_at", "ready_at")
        last = max(holders, key=lambda task: (task.enqueued_at, task.id), default=None)
        if last is None:  # None is committed: wait, to have a task to return.
            return self._insert(payload, f"{base}#0")
        self._full[base] = enqueued_of(last)
        self._dropped += 1
        return self._full[base]

    def _refuse(self, payload: Payload, base: str) -> Enqueued | None:
        spec = self._spec
        count_turned_away(self._connection, spec.name, TurnedAway.REFUSED)
        alike = _(" with this key") if ":" in base else ""
        tasks = _("task") if spec.places == 1 else _("tasks")
        raise CapacityReached(_(
            "The capacity of {name} is reached: {places:,} unfinished {tasks}{alike}. Enqueue this "
            "one later.",
            name=spec.name, places=spec.places, tasks=tasks, alike=alike,
        ), spec.places)  # fmt: skip

    def _replace(self, payload: Payload, base: str) -> Enqueued | None:
        """Cancel the task that has waited longest, and take its place."""
        with atomic(using=self._connection.alias):
            oldest = self._lock_oldest(base)
            if oldest is None:
                return self._refuse(payload, base)
            reason = f"Replaced by task {_dashed(payload.id)}: the capacity was reached."
            cancel_waiting(self._connection, [oldest], reason=reason)
            count_turned_away(self._connection, self._spec.name, TurnedAway.REPLACED)
            return self._insert(payload, str(oldest.unique_key))

    def _lock_oldest(self, base: str) -> Task | None:
        """Lock the task that has waited longest and that no other session has locked."""
        waiting = self._holders(base).filter(status__in=sorted(PENDING))
        # Sorted here: if asked for the first by id, the server might read all tasks in id order.
        for task_id in sorted(waiting.values_list("id", flat=True)):
            one = waiting.filter(id=task_id).select_for_update(skip_locked=True)
            if locked := list(one):
                return locked[0]
        return None


def _dashed(task_id: str) -> str:
    return f"{task_id[:8]}-{task_id[8:12]}-{task_id[12:16]}-{task_id[16:20]}-{task_id[20:]}"
