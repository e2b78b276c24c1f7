"""A worker's statements find each row by its key, whatever the statistics of its tables say.

Statistics are of some earlier moment: autovacuum analyzes when it gets to it, a table grows by
thousands of rows a second. Each state below is one in which it leaves the tables of a busy queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.engine.connections import own_session
from taskqueue.engine.limits import Limits
from taskqueue.engine.record import record, write_logs, write_notes
from taskqueue.engine.rows import Claimed, Held, LogLine, Note
from taskqueue.engine.statement import change
from taskqueue.engine.wording import wording_for
from taskqueue.outcomes import Kind
from tests.engine.steps import another_connection, claim, outcome
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

MANY = 20_000
SIZES = (1, 100, 1000)
TABLES = "taskqueue_task, taskqueue_lease, taskqueue_tasklog"
# As an enqueue, a claim and a record leave them behind.
FINISHED = """
WITH task AS (
    INSERT INTO taskqueue_task (
        id, name, queue_name, status, priority, run_after, args, kwargs, options, metadata,
        attempt, failures, crashes, max_attempts, max_crashes, crash_delay, unique_for,
        holds_unique_key, error_class, error_message, enqueued_at, ready_at, started_at,
        finished_at, prune_after
    )
    SELECT
        gen_random_uuid(), 'tests.sample.tasks.noop', 'default', 'succeeded', 0, now(),
        '[]', '{}', '{}', '{}', 1, 0, 0, 1, 3, interval '10 seconds', '', false, '', '', now(),
        now(), now(), now(), now() + interval '7 days'
    FROM generate_series(1, %s)
    RETURNING id
)
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, claimed_at, started_at, expires_at, finished_at,
    stop_requested_by, stop_reason, progress_message, error_class, error_message, traceback
)
SELECT id, 'w1', 1, 'succeeded', now(), now(), now(), now(), '', '', '', '', '', '' FROM task
"""


Verb = Callable[[BaseDatabaseWrapper, Sequence[Claimed]], object]


@pytest.fixture(autouse=True)
def autovacuum_comes_when_the_test_says() -> Iterator[None]:
    """Autovacuum of the server could change the statistics at any moment."""
    for table in TABLES.split(", "):
        change(default_connection, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    yield
    for table in TABLES.split(", "):
        change(default_connection, f"ALTER TABLE {table} RESET (autovacuum_enabled)")


def test_statistics_of_empty_tables() -> None:
    change(default_connection, f"VACUUM (ANALYZE) {TABLES}")
    change(default_connection, FINISHED, (MANY,))
    claimed = running(1000)

    assert_frugal(claimed)


def test_statistics_of_a_few_running_tasks() -> None:
    running(20)
    change(default_connection, f"VACUUM (ANALYZE) {TABLES}")
    change(default_connection, FINISHED, (MANY,))
    claimed = running(1000)

    assert_frugal(claimed)


def test_statistics_of_rows_that_are_all_dead() -> None:
    """Pages are many, and no row is known: a walk of a whole index seems to cost nothing."""
    change(default_connection, FINISHED, (MANY,))
    change(default_connection, "DELETE FROM taskqueue_lease")
    change(default_connection, "DELETE FROM taskqueue_task")
    change(default_connection, f"ANALYZE {TABLES}")
    change(default_connection, FINISHED, (MANY,))
    claimed = running(1000)

    assert_frugal(claimed)


def test_statistics_from_before_the_last_claim_and_fresh_ones() -> None:
    change(default_connection, FINISHED, (MANY,))
    change(default_connection, f"VACUUM (ANALYZE) {TABLES}")
    claimed = running(1000)

    assert_frugal(claimed)

    change(default_connection, f"VACUUM (ANALYZE) {TABLES}")

    assert_frugal(claimed)


def running(count: int) -> list[Claimed]:
    """Tasks that are claimed, and as many that are ready."""
    noop.enqueue_many([((), {})] * 2 * count)
    claimed = claim(count)
    assert len(claimed) == count
    return claimed


def assert_frugal(claimed: Sequence[Claimed]) -> None:
    """No step of any statement reads many more rows than it is for."""
    found: list[str] = []
    # Behind a pooler a session has no settings of the worker's.
    for is_owned, verbs in ((False, BY_KEY), (True, BY_KEY | BY_INDEX)):
        with another_connection() as worker:
            if is_owned:
                own_session(worker)
            for (name, verb), size in product(verbs.items(), SIZES):
                for statement, plan in plans(worker, verb, claimed[:size]):
                    where = f"{name}, {size}, session owned: {is_owned}, {statement}"
                    found += [f"{where}: {step}" for step in wasteful_steps(plan, size)]
    assert not found, "\n".join(found)


def wasteful_steps(plan: dict[str, Any], size: int) -> Iterator[str]:
    removed = sum(plan[key] for key in plan if key.startswith("Rows Removed"))
    if "Relation Name" in plan and plan["Node Type"] != "ModifyTable":
        removed += plan["Actual Rows"]
    rows = removed * plan["Actual Loops"]
    # Running leases are as many as the fleet has slots and orders, not as tasks ever were.
    if rows > 4 * size + 200 and plan.get("Index Name") != "taskqueue_lease_running":
        yield f"{plan['Node Type']} {plan.get('Index Name', '')}: {rows:.0f} rows"
    for each in plan.get("Plans", []):
        yield from wasteful_steps(each, size)


def plans(
    worker: BaseDatabaseWrapper, verb: Verb, claimed: Sequence[Claimed]
) -> list[tuple[str, dict[str, Any]]]:
    """How the server ran each statement of a verb; nothing that it changes is kept."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def explain(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        with kept(worker):
            execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters, many, context)
            (answer,) = context["cursor"].cursor.fetchone()
            seen.append((sql.split()[0], answer[0]["Plan"]))
        return execute(sql, parameters, many, context)

    with kept(worker), worker.execute_wrapper(explain):
        verb(worker, claimed)
    return seen


@contextmanager
def kept(worker: BaseDatabaseWrapper) -> Iterator[None]:
    """Everything is as it was before."""
    begin, end = (
        ("SAVEPOINT a", "ROLLBACK TO a") if in_transaction(worker) else ("BEGIN", "ROLLBACK")
    )
    raw(worker, begin)
    yield
    raw(worker, end)


def in_transaction(worker: BaseDatabaseWrapper) -> bool:
    session: Any = worker.connection
    return bool(session.info.transaction_status.value)


def raw(worker: BaseDatabaseWrapper, sql: str, *parameters: Any) -> None:
    """Run what is not to be explained."""
    session: Any = worker.connection
    session.execute(sql, parameters)


def limits() -> Limits:
    return Limits.of(get_settings())


def record_as(kind: Kind) -> Verb:
    def verb(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
        recorded = record(worker, [outcome(each, kind) for each in claimed], limits=limits())
        assert len(recorded) == len(claimed)

    return verb


def renew(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    held = [Held(each.lease_id, 30.0, 1.0) for each in claimed]
    assert len(wording_for(worker).renew(worker, held).renewed) == len(claimed)


def renew_ended(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    record_as(Kind.SUCCEEDED)(worker, claimed)
    held = [Held(each.lease_id, 30.0, 1.0) for each in claimed]
    assert len(wording_for(worker).renew(worker, held).succeeded) == len(claimed)


def note(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    write_notes(worker, [Note(each.lease_id, 1.0, 0.5, "half") for each in claimed])


def log(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    write_logs(worker, [LogLine(each.lease_id, 1.0, 20, "shop", "hello") for each in claimed])


def see_stops(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    wording_for(worker).see_stops(worker, [each.lease_id for each in claimed])


def read_terms(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    wording_for(worker).live_terms(worker, [each.lease_id for each in claimed])


def lock_shared(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    ids = [each.lease_id for each in claimed]
    raw(worker, "UPDATE taskqueue_lease SET is_shared = true WHERE id = ANY (%s)", ids)
    assert len(wording_for(worker).lock_shared(worker, ids)) == len(claimed)


def claim_more(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    assert len(claim(len(claimed), connection=worker)) == len(claimed)


def promote(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    change_ready(worker, claimed, "status = 'scheduled', run_after = now() - interval '1 hour'")
    wording = wording_for(worker)
    promoted = wording.promote(worker, worker_id=0, limit=len(claimed)).promoted
    assert promoted == len(claimed)


def end_overdue(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    change_ready(worker, claimed, "deadline_at = now() - interval '1 hour'")
    ended = wording_for(worker).end_overdue(worker, limit=len(claimed), failed=None, cancelled=None)
    assert len(ended) == len(claimed)


def prune(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    record_as(Kind.SUCCEEDED)(worker, claimed)
    ids = [each.task_id for each in claimed]
    raw(worker, "UPDATE taskqueue_task SET prune_after = 'epoch' WHERE id = ANY (%s::uuid[])", ids)
    assert wording_for(worker).prune(worker, limit=len(claimed)) == len(claimed)


def take_over(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    ids = [each.lease_id for each in claimed]
    raw(worker, "UPDATE taskqueue_lease SET expires_at = 'epoch' WHERE id = ANY (%s)", ids)
    expired = wording_for(worker).expired_leases(worker, limit=len(ids), grace=timedelta())
    assert sorted(expired) == sorted(ids)


def change_ready(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed], values: str) -> None:
    """Change as many tasks as these that nobody has claimed."""
    raw(
        worker,
        f"UPDATE taskqueue_task SET {values} WHERE id IN "
        "(SELECT id FROM taskqueue_task WHERE status = 'ready' LIMIT %s)",
        len(claimed),
    )


BY_KEY: dict[str, Verb] = {
    "record successes": record_as(Kind.SUCCEEDED),
    "record failures": record_as(Kind.FAILED),
    "withdraw": record_as(Kind.UNSTARTED),
    "renew": renew,
    "renew what has ended": renew_ended,
    "write notes": note,
    "write log lines": log,
    "see stops": see_stops,
    "read terms": read_terms,
    "lock leases of several workers": lock_shared,
}
BY_INDEX: dict[str, Verb] = {
    "claim": claim_more,
    "promote": promote,
    "end overdue tasks": end_overdue,
    "prune": prune,
    "find expired leases": take_over,
}
