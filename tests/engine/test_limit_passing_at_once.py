"""Successes whose places pass on, recorded with all that they count by a single statement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from taskqueue import control
from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine.connections import transaction
from taskqueue.engine.limit_rows import PassingTerms
from taskqueue.engine.postgresql.limit_pass import Passed
from taskqueue.engine.postgresql.limit_pass_at_once import record_and_pass
from taskqueue.engine.record import record_at_once
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change, fetch
from taskqueue.engine.tally import Subject, Tally
from taskqueue.models import Lease, LimitNote, Partition, Rollup, Task
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.limited_exchange import claim_by_rank
from taskqueue.worker.limits import SlotLimits
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.recording import Batch
from tests.engine.limit_steps import args, open_lanes, repairs, take
from tests.engine.steps import LEASE, another_connection, policy, run_at_once
from tests.engine.test_bad_statistics import FINISHED
from tests.engine.test_limit_passing import begin, places, running, two_a_key
from tests.sample.tasks import add, noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

TERMS = PassingTerms("w1", ["default"], [], LEASE, most=100)
HAS_WAITED = """
SELECT count(*)
FROM pg_stat_activity
WHERE pid = %s AND wait_event_type = 'Lock' AND clock_timestamp() > query_start + interval '0.1 s'
"""
TABLES = ["taskqueue_task", "taskqueue_lease", "taskqueue_slot", "taskqueue_partition"]
ROWS_READ = """
SELECT COALESCE(sum(idx_tup_fetch + seq_tup_read), 0)::int
FROM pg_stat_xact_user_tables
WHERE relname = ANY (%s)
"""


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    """A session of a worker's own."""
    with another_connection() as connection:
        own_session(connection)
        yield connection


def subject_of(lease_id: int) -> Subject:
    task = Lease.objects.get(id=lease_id).task
    return Subject(str(task.id), task.queue_name, task.name, None, is_step=task.step_id is not None)


def ends(leases: dict[int, str]) -> list[Outcome]:
    return [Outcome(id, OutcomeKind.SUCCEEDED, ended=0.0, started=0.1) for id in leases]


def pass_at_once(
    session: BaseDatabaseWrapper,
    leases: dict[int, str],
    subject_of: Callable[[int], Subject | None] = subject_of,
) -> tuple[dict[int, Recorded] | None, Passed | None]:
    """Record these leases as a worker does that knows of nothing else."""
    passed: list[Passed] = []
    recorded = record_at_once(
        ends(leases),
        lambda *rows: passed.append(record_and_pass(session, *rows, ended=leases, terms=TERMS)),
        policy=policy(),
        tally=Tally(subject_of),
    )
    return recorded, passed[0] if passed else None


def pass_behind_a_lock(
    session: BaseDatabaseWrapper, leases: dict[int, str], meanwhile: Callable[[], object]
) -> Passed:
    """Record these leases while another session holds one of them, and something is committed."""
    results: list[Passed | None] = []
    known = {lease_id: subject_of(lease_id) for lease_id in leases}
    pid = session.connection.info.backend_pid

    def wait() -> None:
        with another_connection() as other, transaction(other):
            change(other, "SELECT id FROM taskqueue_lease WHERE id = %s FOR UPDATE", [min(leases)])
            is_held.set()
            until = time.monotonic() + 60
            with another_connection() as looking:
                while not fetch(looking, HAS_WAITED, (pid,))[0][0]:
                    assert time.monotonic() < until, "It does not wait."
            meanwhile()

    def record() -> None:
        assert is_held.wait(60)
        results.append(pass_at_once(session, leases, known.get)[1])

    is_held = threading.Event()
    run_at_once([wait, record])
    [passed] = results
    assert passed is not None
    return passed


def test_all_is_recorded_counted_and_passed_on(session: BaseDatabaseWrapper) -> None:
    ended = begin(4)
    recorded, passed = pass_at_once(session, ended)
    assert recorded is not None
    assert recorded.keys() == ended.keys()
    assert passed is not None
    assert args(passed.claimed) == ["[1, 2]", "[1, 3]"]
    assert not passed.has_news
    assert not passed.has_others
    assert places() == running() == set(passed.passing)
    counted = Rollup.objects.get()
    assert (counted.succeeded, counted.tasks_succeeded) == (2, 2)
    assert not LimitNote.objects.exists()


def test_each_place_begins_when_the_one_before_has_ended(session: BaseDatabaseWrapper) -> None:
    pass_at_once(session, begin(3))
    lease = Lease.objects.get(finished_at=None)
    for before in Lease.objects.exclude(finished_at=None):
        assert before.finished_at is not None
        assert lease.claimed_at >= before.finished_at


def test_places_that_nobody_takes_over_are_news(session: BaseDatabaseWrapper) -> None:
    _, passed = pass_at_once(session, begin(3))
    assert passed is not None
    assert args(passed.claimed) == ["[1, 2]"]
    assert passed.has_news
    assert take() == []
    assert places() == running() == set(passed.passing)
    assert repairs() == 0


@pytest.mark.parametrize(
    ("stop", "most"),
    [
        (lambda: control.pause("default"), 0),
        (lambda: control.pause_definition(add.name), 0),
        (lambda: control.override_limit("key", concurrency=1), 1),
    ],
    ids=["queue", "definition", "limit"],
)
def test_passing_honours_a_pause_that_commits_while_it_waits_for_a_lease(
    session: BaseDatabaseWrapper, stop: Callable[[], object], most: int
) -> None:
    passed = pass_behind_a_lock(session, begin(6), stop)
    assert passed.claimed == []
    assert passed.has_news, "The next claim looks at the places that were given back."
    assert len(take()) == most
    assert repairs() == 0


def test_fewer_pass_on_once_the_limit_allows_fewer(session: BaseDatabaseWrapper) -> None:
    ended = begin(6)
    control.override_limit("key", concurrency=1)
    _, passed = pass_at_once(session, ended)
    assert passed is not None
    assert len(passed.claimed) == 1
    assert places() == running() == set(passed.passing)


def test_nothing_is_done_where_one_of_them_has_ended_or_is_to_stop(
    session: BaseDatabaseWrapper,
) -> None:
    ended = begin(4)
    first, second = ended
    for changes in (
        {"finished_at": timezone.now(), "status": "lost"},
        {"stop_seen_at": timezone.now()},
    ):
        Lease.objects.filter(id=first).update(**changes)
        assert pass_at_once(session, ended) == (None, None)
        assert Lease.objects.get(id=second).finished_at is None
        assert not Rollup.objects.exists()
        Lease.objects.filter(id=first).update(finished_at=None, status="running", stop_seen_at=None)


def test_tasks_of_workflows_are_recorded_otherwise(session: BaseDatabaseWrapper) -> None:
    ended = begin(2)
    for known in (lambda id: subject_of(id)._replace(is_step=True), lambda id: None):
        assert pass_at_once(session, ended, known) == (None, None)
    Task.objects.update(step_id=7)
    own = subject_of(min(ended))._replace(is_step=False)
    assert pass_at_once(session, ended, lambda id: own) == (None, None)
    assert running() == set(ended)


def test_the_kept_plan_reads_by_keys_whatever_else_is_there(session: BaseDatabaseWrapper) -> None:
    two_a_key.enqueue_many([((key, number), {}) for number in range(24) for key in range(10)])
    held = begin(0)
    assert len(held) == 20
    found = []
    known = subject_of(min(held))
    with transaction(session):
        for turn in range(10):
            if turn == 7:
                with another_connection() as other:
                    change(other, FINISHED, (5000,))
            before = fetch(session, ROWS_READ, (TABLES,))[0][0]
            _, passed = pass_at_once(session, held, lambda id: known)
            assert passed is not None
            held = passed.passing
            found.append(fetch(session, ROWS_READ, (TABLES,))[0][0] - before)
    assert len(held) == 20
    assert max(found) <= 20 * 30


class PlayedRequests:
    """The requests of a worker that claims under limits, with the statements that each took."""

    def __init__(self, session: BaseDatabaseWrapper) -> None:
        self._session = session
        self.limits = SlotLimits(QueueQuotas.parse("default"), {})
        self._claims = Claims(
            QueueQuotas.parse("default"), worker_name="w1", slots=4, lease_duration=LEASE
        )
        self._claims.limited.see(open_lanes())
        self._held: list[Claimed] = []
        self.statements: list[str] = []

    def next(self, kind: OutcomeKind = OutcomeKind.SUCCEEDED) -> list[str]:
        """Record what the last one claimed, and claim; the arguments of the tasks."""
        room = self.limits.room([])
        outcomes = ends({row.lease_id: "" for row in self._held})
        outcomes[:1] = [each._replace(kind=kind) for each in outcomes[:1]]
        exchange = Exchange(outcomes=outcomes, want=4, free=4, room=room)
        self._claims.begin(room, slots=4)
        self.statements = []
        with self._session.execute_wrapper(self._note):
            batch = Batch(policy(), Tally(subject_of))
            claim_by_rank(self._session, self._claims, exchange, batch)
        self._held = exchange.claimed
        return args(exchange.claimed)

    def _note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements.append(sql)
        return execute(sql, params, many, context)


def test_a_worker_records_and_claims_in_one_statement_while_nothing_else_waits(
    session: BaseDatabaseWrapper,
) -> None:
    two_a_key.enqueue_many([((1, number), {}) for number in range(9)])
    worker = PlayedRequests(session)
    assert worker.next() == ["[1, 0]", "[1, 1]"]
    assert worker.next() == ["[1, 2]", "[1, 3]"]
    assert len(worker.statements) > 1, "It does not know yet that nothing else waits."
    assert worker.next() == ["[1, 4]", "[1, 5]"]
    assert len(worker.statements) == 1
    two_a_key.enqueue(2, 0)
    assert sorted(worker.next()) == ["[1, 6]", "[1, 7]", "[2, 0]"]
    assert len(worker.statements) > 1
    assert worker.next() == ["[1, 8]"]
    assert worker.next() == []
    assert (places(), running()) == (set(), set())
    assert Task.objects.filter(status="succeeded").count() == 10
    assert sum(Rollup.objects.values_list("tasks_succeeded", flat=True)) == 10


def test_a_place_that_another_end_of_the_batch_gives_back_is_claimed_at_once(
    session: BaseDatabaseWrapper,
) -> None:
    two_a_key.enqueue_many([((1, number), {}) for number in range(9)])
    worker = PlayedRequests(session)
    for _ in range(3):
        worker.next()
    assert worker.next(OutcomeKind.CANCELLED) == ["[1, 6]", "[1, 7]"]
    assert Partition.objects.get().state == "waiting"


def test_places_pass_on_beside_definitions_that_are_left_to_other_workers(
    session: BaseDatabaseWrapper,
) -> None:
    two_a_key.enqueue_many([((1, number), {}) for number in range(8)])
    worker = PlayedRequests(session)
    worker.limits.excluded = frozenset([noop.name])
    worker.next()
    worker.next()
    assert worker.next() == ["[1, 4]", "[1, 5]"]
    assert len(worker.statements) == 1
    worker.limits.excluded = frozenset([add.name])
    assert worker.next() == []
    assert (places(), running()) == (set(), set())
