"""Claims under limits read few rows, however many tasks, keys and waiting partitions there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency, Fair
from taskqueue.engine.apart import best_ordinary
from taskqueue.engine.connections import installed, transaction
from taskqueue.engine.limits.sweeping import Sweep
from taskqueue.engine.record import record
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change, fetch
from taskqueue.models import LimitNote, Partition
from tests.engine.limit_steps import open_lanes, take
from tests.engine.steps import another_connection, end, outcome, policy
from tests.sample.tasks import add
from tests.sharing_out import IS_FULL, SEED

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

WANT = 10
SWEPT = 3000
MANY = SWEPT if IS_FULL else 1500
"""Tasks: more than the bounds of rows below, so that whatever reads all of them is above."""
TABLES = [
    f"taskqueue_{name}"
    for name in ("task", "lease", "partition", "limiter", "slot", "limitnote", "limit")
]
ROWS_READ = """
SELECT COALESCE(sum(idx_tup_fetch + seq_tup_read), 0)
FROM pg_stat_xact_user_tables
WHERE relname = ANY (%s)
"""
one_a_key = add.using(concurrency=Concurrency(1, key="a", name="key"))
one = add.using(concurrency=Concurrency(1, name="one"))
shared = add.using(fair=Fair("a"), concurrency=Concurrency(1, name="one"))


WHEN, WHOSE = ("never", "empty", "full"), ("owned", "shared")
PAIRS = [
    pytest.param(when, whose, id=f"{when}-{whose}")
    for place, (when, whose) in enumerate(product(WHEN, WHOSE))
    if IS_FULL or (place + place // len(WHOSE)) % 2 == SEED % 2
]
"""All with all with TASKQUEUE_FULL=1; else each with one, which the seed chooses."""
pytestmark.append(pytest.mark.parametrize(("analyzed", "worker"), PAIRS, indirect=True))


@pytest.fixture
def analyzed(request: pytest.FixtureRequest) -> Iterator[str]:
    """When the server looked at the tables; not while they are read."""
    for table in TABLES:
        change(default_connection, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    if request.param == "empty":
        change(default_connection, f"VACUUM (ANALYZE) {', '.join(TABLES)}")
    yield request.param
    for table in TABLES:
        change(default_connection, f"ALTER TABLE {table} RESET (autovacuum_enabled)")


@pytest.fixture
def worker(request: pytest.FixtureRequest, analyzed: str) -> Iterator[BaseDatabaseWrapper]:
    """A session of a worker's own, or one that a pooler may give to others."""
    with another_connection() as connection:
        if request.param == "owned":
            own_session(connection)
        yield connection


def settle(analyzed: str) -> None:
    """Let claims take in all notes; it leaves nothing running."""
    while LimitNote.objects.exists():
        take(0)
    if analyzed == "full":
        change(default_connection, f"VACUUM (ANALYZE) {', '.join(TABLES)}")


def reads(worker: BaseDatabaseWrapper, *, want: int = WANT) -> int:
    """How many rows a claim and the record of what it got read, at most, of several."""
    found = []
    for _ in range(8):
        with transaction(worker):
            before = rows_read(worker)
            claimed = take(want, connection=worker, is_within=True)
            if claimed:
                outcomes = [outcome(each, OutcomeKind.SUCCEEDED) for each in claimed]
                record(worker, outcomes, policy=policy())
            found.append(rows_read(worker) - before)
    return max(found)


def rows_read(worker: BaseDatabaseWrapper) -> int:
    return int(fetch(worker, ROWS_READ, (TABLES,))[0][0])


def test_tasks_behind_a_full_key_add_no_cost_to_a_claim(
    worker: BaseDatabaseWrapper, analyzed: str
) -> None:
    one.enqueue_many([((1,), {})] * MANY)
    settle(analyzed)
    assert len(take(1)) == 1
    assert take(1) == []
    assert open_lanes() == set()
    one_a_key.enqueue_many([((number,), {}) for number in range(40)])
    settle("")
    assert reads(worker) <= 60 * WANT


def test_a_claim_reads_as_little_with_many_open_keys_as_with_few(
    worker: BaseDatabaseWrapper, analyzed: str
) -> None:
    one_a_key.enqueue_many([((number,), {}) for number in range(MANY)])
    settle(analyzed)
    assert Partition.objects.filter(state="open").count() == MANY
    assert reads(worker) <= 60 * WANT


def test_a_place_of_a_limiter_opens_few_of_the_many_that_wait_for_it(
    worker: BaseDatabaseWrapper, analyzed: str
) -> None:
    shared.enqueue_many([((number % (MANY // 2),), {}) for number in range(MANY)])
    settle("")
    [running] = take(1)
    while open_lanes():
        take(100)
    assert Partition.objects.filter(state="waiting").count() >= MANY // 2 - 1
    settle(analyzed)
    end(running, OutcomeKind.SUCCEEDED)
    for want in (1, WANT):
        assert reads(worker, want=want) <= 60 * WANT


def test_a_sweep_reads_a_batch(worker: BaseDatabaseWrapper, analyzed: str) -> None:
    one_a_key.enqueue_many([((number,), {}) for number in range(SWEPT)])
    settle(analyzed)
    with installed(worker), atomic(using=worker.alias):
        before = rows_read(worker)
        Sweep().step(worker)
        assert rows_read(worker) - before <= 10 * 500


def test_the_backlog_of_a_paused_definition_costs_a_look_for_the_best_task_little(
    worker: BaseDatabaseWrapper, analyzed: str
) -> None:
    add.enqueue_many([((1,), {})] * MANY)
    control.pause_definition(add.name)
    settle(analyzed)
    with transaction(worker):
        before = rows_read(worker)
        best_ordinary(worker, "default", [])
        assert rows_read(worker) - before <= 1000
