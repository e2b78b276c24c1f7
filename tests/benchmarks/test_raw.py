"""The raw loops do no more work than the engine, by what the server did: no time is taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from django.db import connection as default_connection

from benchmarks import raw
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.postgresql.copying import COPY
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change
from taskqueue.models import Lease, Task
from tests.engine.steps import another_connection, claim
from tests.engine.test_bad_statistics import plans
from tests.engine.worker_verbs import Verb, claim_more, record_as
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

READY = 3_000
BATCH = 100
# Two runs of one statement read as many rows. The pages depend on what others, such as autovacuum,
# have done to the tables meanwhile.
MOST_PAGES = 2
# So that both find the same pages, with the same room.
VACUUM = "VACUUM (ANALYZE) taskqueue_task, taskqueue_lease"
Plan = dict[str, Any]
LOOPS = [raw.Engine, raw.Least]
Loop = type[raw.Engine | raw.Least]


class Explaining(psycopg.Cursor[Any]):
    """Explains what it runs; the changes of that are kept, its rows are not."""

    plan: Plan

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        """How the server ran it."""
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}"
        [found] = super().execute(explain, *arguments, **options).fetchone() or ()
        self.plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
        return self

    def fetchall(self) -> list[Any]:
        """Nothing."""
        return []


@pytest.fixture
def ready() -> None:
    noop.enqueue_many([((), {})] * READY)


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_raw_claim_uses_the_index_of_the_engine_and_reads_no_more(loop: Loop) -> None:
    of_engine = engine_plan(claim_more, claim(BATCH))
    of_loop = raw_plan(lambda cursor: loop(cursor, "raw", BATCH).claim())

    assert claim_indexes(of_engine) == claim_indexes(of_loop) == [raw.CLAIM_INDEX]
    assert not [each for each in steps(of_loop, "picked") if "Sort" in each["Node Type"]]
    assert reads_no_more(of_loop, of_engine)


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_raw_record_finds_rows_by_their_keys_and_reads_no_more(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = claim(BATCH)
    leases = [each.lease_id for each in claimed]
    of_engine = engine_plan(record_as(OutcomeKind.SUCCEEDED), claimed)
    # The loop counts what it has recorded; this cursor has no rows.
    monkeypatch.setattr(Explaining, "fetchall", lambda self: leases)
    of_loop = raw_plan(lambda cursor: loop(cursor, "raw", BATCH).record(leases))

    assert {each["Index Name"] for each in index_scans(of_loop)} == {
        "taskqueue_lease_pkey",
        "taskqueue_task_pkey",
    }
    assert rows_read(of_loop) <= rows_read(of_engine)
    # The least record updates leases that it has not locked, and touches a third more pages.
    assert loop is raw.Least or reads_no_more(of_loop, of_engine)


@pytest.mark.usefixtures("ready")
def test_a_claim_that_misses_the_index_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A raw loop that sorted every ready task once flattered the engine twofold."""
    of_engine = engine_plan(claim_more, claim(BATCH))
    wrong = raw.CLAIM.replace("queue_name = quota.queue_name", "queue_name || '' = 'default'")
    assert wrong != raw.CLAIM
    monkeypatch.setattr(raw, "CLAIM", wrong)
    of_loop = raw_plan(lambda cursor: raw.Engine(cursor, "raw", BATCH).claim())

    assert not reads_no_more(of_loop, of_engine)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_raw_loop_leaves_what_a_worker_leaves(loop: Loop) -> None:
    noop.enqueue_many([((), {})] * BATCH)
    with raw.session() as cursor:
        tested = loop(cursor, "raw", BATCH)
        leases = tested.claim()
        tested.record(leases)

    assert len(leases) == BATCH
    kept = Task.objects.filter(status="succeeded", attempt=1, prune_after__isnull=False)
    assert kept.count() == BATCH
    assert Lease.objects.filter(status="succeeded", worker_id="raw").count() == BATCH


def test_raw_inserts_leave_the_row_of_an_enqueue() -> None:
    first = noop.enqueue()
    with raw.session() as cursor:
        row = raw.Row(cursor, str(first.id))
        cursor.execute(row.insert(), ("0190a0b0-0000-7000-8000-000000000001", "[]"))
        cursor.execute(row.procedure())
        cursor.execute("CALL pg_temp.raw_insert('0190a0b0-0000-7000-8000-000000000002', '[]')")
        with cursor.copy(COPY) as copy:
            copy.write(raw.rows_of_copy(noop, 1))

    own = {"id", "args", "run_after", "enqueued_at", "ready_at"}
    rows = [
        {name: value for name, value in each.items() if name not in own}
        for each in Task.objects.values()
    ]
    assert rows == [rows[0]] * 4


def engine_plan(verb: Verb, claimed: Sequence[Claimed]) -> Plan:
    """How the server ran the first statement of a worker; nothing that it changed is kept."""
    change(default_connection, VACUUM)
    with another_connection() as worker:
        own_session(worker)
        return plans(worker, verb, claimed)[0][1]


def raw_plan(run: Callable[[psycopg.Cursor[Any]], object]) -> Plan:
    """How the server ran a statement of a raw loop; nothing that it changed is kept."""
    change(default_connection, VACUUM)
    with raw.session() as cursor, cursor.connection.transaction(force_rollback=True):
        explaining = Explaining(cursor.connection)
        run(explaining)
        return explaining.plan


def steps(plan: Plan, within: str | None = None) -> Iterator[Plan]:
    """All steps of a plan, or those of one of its subqueries."""
    if within in (None, str(plan.get("Subplan Name")).removeprefix("CTE ")):
        within = None
        yield plan
    for each in plan.get("Plans", []):
        yield from steps(each, within)


def index_scans(plan: Plan, within: str | None = None) -> list[Plan]:
    """Those that read tasks and leases by an index."""
    return [
        each
        for each in steps(plan, within)
        if str(each.get("Index Name")).startswith(("taskqueue_task", "taskqueue_lease"))
    ]


def claim_indexes(plan: Plan) -> list[str]:
    """The indexes by which a claim finds its tasks."""
    return [each["Index Name"] for each in index_scans(plan, "picked")]


def reads_no_more(plan: Plan, than: Plan) -> bool:
    """Whether it reads no more rows, and touches no more pages but for chance."""
    return rows_read(plan) <= rows_read(than) and pages(plan) <= pages(than) * MOST_PAGES


def rows_read(plan: Plan) -> float:
    """Rows that scans gave or removed, by all of their loops."""
    return sum(
        (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"]
        for each in steps(plan)
        if "Relation Name" in each and each["Node Type"] != "ModifyTable"
    )


def pages(plan: Plan) -> int:
    """Pages that were touched, in memory or not."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
