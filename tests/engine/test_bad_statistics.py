"""A worker's statements find each row by its key, whatever the statistics of its tables say.

Statistics are of some earlier moment: autovacuum analyzes when it gets to it, a table grows by
thousands of rows a second. Each state below is one in which it leaves the tables of a busy queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change
from tests.engine.steps import another_connection, claim
from tests.engine.worker_verbs import BY_INDEX, BY_KEY, Verb, raw
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
        -- Ids grow with the time, as those of an enqueue.
        (
            to_char(EXTRACT(epoch FROM clock_timestamp()) * 1000, 'FM000000000000000')
            || substr(translate(gen_random_uuid()::text, '-', ''), 16)
        )::uuid,
        'tests.sample.tasks.noop', 'default', 'succeeded', 0, now(),
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
        if sql.startswith("LOCK TABLE"):  # It has no plan.
            return execute(sql, parameters, many, context)
        with kept(worker):
            execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters, many, context)
            (answer,) = context["cursor"].cursor.fetchone()
            seen.append((sql.split()[0], answer[0]["Plan"]))
        return execute(sql, parameters, many, context)

    with kept(worker), worker.execute_wrapper(explain):
        changed = verb(worker, claimed)
    assert changed is None or len(changed) == len(claimed)
    return seen


@contextmanager
def kept(worker: BaseDatabaseWrapper) -> Iterator[None]:
    """Everything is as it was before."""
    is_inner = in_transaction(worker)
    raw(worker, "SAVEPOINT here" if is_inner else "BEGIN")
    yield
    raw(worker, "ROLLBACK TO here" if is_inner else "ROLLBACK")


def in_transaction(worker: BaseDatabaseWrapper) -> bool:
    session: Any = worker.connection
    return bool(session.info.transaction_status.value)
