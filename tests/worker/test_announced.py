"""Claims of announced tasks, and what goes before them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic
from django.test.utils import CaptureQueriesContext

from taskqueue.control import pause
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.notify import ANYWHERE, PLACES, STOP, Listener, notify
from taskqueue.engine.statement import fetch
from taskqueue.models import Lease, Queue, Worker
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.main_loop import MainLoop
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.recorder import LINGER, LONG_LINGER
from taskqueue.worker.timetable import DUTIES_AFTER, FIRST_DUTIES, LOOK_AFTER
from tests.conftest import StartWorker
from tests.engine.steps import LEASE
from tests.engine.test_workers import registered
from tests.sample.models import Effect
from tests.sample.tasks import append_and_wait, mark, noop
from tests.worker.played import NOW, PlayedWorker
from tests.worker_process import wait_until


def kind(request: Exchange | None) -> str:
    if request is None:
        return "none"
    if request.announced:
        return f"claim {' '.join(request.announced)}"
    return "duties" if request.with_duties else f"look for {request.want}"


def test_an_announced_queue_is_claimed_alone_then_all_others_then_the_duties_are_served() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2).rest()
    worker.timetable.hear({"mail"}, NOW)

    assert kind(worker.next_request()) == "claim mail"
    worker.answer(1)
    assert kind(worker.next_request()) == "none"
    assert kind(worker.next_request(NOW + LOOK_AFTER)) == "look for 2"
    worker.answer()
    assert kind(worker.next_request(NOW + LOOK_AFTER)) == "none"
    assert kind(worker.next_request(NOW + DUTIES_AFTER)) == "duties"


def test_a_worker_that_lost_its_connection_claims_once_the_database_is_back() -> None:
    worker = PlayedWorker().rest()
    worker.coordinator.outage.begin(OSError(), NOW)
    assert kind(worker.next_request(NOW + 60)) != "none"
    worker.answer(now=NOW + 60)
    assert kind(worker.next_request(NOW + 60)) == "look for 1"


def test_an_idle_worker_hands_out_what_it_claims_before_its_loop_looks_at_anything_else() -> None:
    worker = PlayedWorker(slots=2).rest()
    handed_out: list[int] = []
    worker.dispatcher.add = lambda jobs: handed_out.extend(job.lease_id for job in jobs)
    worker.dispatcher.dispatch = lambda now: handed_out.append(-1)
    loop = MainLoop.__new__(MainLoop)
    loop._state, loop._dispatcher = worker.dispatcher.state, worker.dispatcher
    loop._coordinator, loop._database = worker.coordinator, worker.thread
    loop._state.heard.append("mail")
    loop._take_report(NOW)
    assert kind(worker.next_request()) == "claim mail"
    worker.thread.answer(1)
    loop._take_report(NOW)
    assert handed_out == [0, -1]


def test_places_under_limits_are_looked_for_where_a_slot_is_free_and_the_duties_wait() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2).rest()
    worker.timetable.hear({PLACES}, NOW)
    assert kind(worker.next_request()) == "none", "It claims when one of its tasks ends."
    worker.dispatcher.free = 1
    worker.timetable.hear({PLACES}, NOW)
    assert kind(worker.next_request()) == "look for 2"
    worker.answer()
    assert kind(worker.next_request()) == "none"


def test_the_next_token_is_not_forgotten_by_claims_that_meet_nothing() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2).rest()
    worker.timetable.look_again()
    request = worker.next_request()
    assert request is not None
    request.limited_at = NOW + 0.5
    worker.answer()
    worker.rest()
    assert worker.coordinator.next_at(NOW) == NOW + 0.5
    worker.coordinator.take_in(NOW + 0.5)
    assert kind(worker.next_request(NOW + 0.5)) == "look for 2"


def test_ends_wait_for_others_for_as_long_as_the_last_claim_under_limits_took() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2).rest()
    worker.dispatcher.pool.held = 4
    for seconds, linger in ((0.012, 0.012), (1.0, LONG_LINGER), (0.001, LINGER)):
        worker.timetable.look_again()
        request = worker.next_request()
        assert request is not None
        request.limited_seconds = seconds
        worker.answer()
        worker.rest()
        worker.pending.outcomes.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW))
        assert worker.coordinator.next_at(NOW) == pytest.approx(NOW + linger)
        worker.pending.outcomes.clear()


def test_outcomes_that_arrive_during_a_limited_claim_wait_while_others_run() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2).rest()
    worker.dispatcher.pool.held = 1
    worker.timetable.look_again()
    request = worker.next_request()
    assert request is not None
    request.limited_seconds = 0.01
    worker.answer()
    worker.rest()
    worker.pending.outcomes.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW - 0.01))
    assert worker.coordinator.next_at(NOW) == pytest.approx(NOW + 0.01)
    worker.dispatcher.pool.held = 0
    assert worker.coordinator.next_at(NOW) == NOW


def test_the_first_duties_wait_while_each_claim_gives_all_that_was_wanted() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2)
    worker.dispatcher.pool.ready = ["a child"]
    worker.coordinator.begin(NOW)
    worker.answer()
    for _ in range(3):
        assert kind(worker.next_request()) == "look for 2"
        worker.answer(2)
    assert kind(worker.next_request()) == "look for 2"
    worker.answer(1)
    assert kind(worker.next_request()) == "duties"


def test_full_claims_keep_the_first_duties_waiting_for_a_second_at_most() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2)
    worker.dispatcher.pool.ready = ["a child"]
    worker.coordinator.begin(NOW)
    worker.answer()
    assert kind(worker.next_request()) == "look for 2"
    worker.answer(2)
    assert kind(worker.next_request(NOW + FIRST_DUTIES)) == "duties"


def test_all_that_was_announced_is_claimed_together_in_the_order_of_the_queues() -> None:
    worker = PlayedWorker(QueueQuotas.parse("mail=2,web")).rest()
    worker.timetable.hear({"web"}, NOW)
    worker.timetable.hear({"mail", "not-mine"}, NOW)
    assert kind(worker.next_request()) == "claim mail web"


def test_an_announced_task_that_others_took_is_followed_by_a_look_at_everything() -> None:
    worker = PlayedWorker(QueueQuotas()).rest()
    worker.timetable.hear({"mail"}, NOW)
    worker.next_request()
    worker.answer(0)
    assert kind(worker.next_request()) == "look for 1"
    worker.answer()
    assert kind(worker.next_request()) == "duties"


def test_a_notification_for_another_queue_makes_no_claim() -> None:
    worker = PlayedWorker(QueueQuotas.parse("mail")).rest()
    worker.timetable.hear({"web"}, NOW)
    assert kind(worker.next_request()) == "none"
    assert kind(worker.next_request(NOW + DUTIES_AFTER)) == "duties"


@pytest.mark.parametrize("heard", [{ANYWHERE}, {ANYWHERE, "mail"}])
def test_news_of_no_queue_is_a_look_at_everything(heard: set[str]) -> None:
    worker = PlayedWorker(QueueQuotas()).rest()
    worker.timetable.hear(heard, NOW)
    assert kind(worker.next_request()) == "look for 1"


@pytest.mark.parametrize(
    ("queue", "expected"), [("first", "claim first"), ("second", "look for 1")]
)
def test_in_strict_order_only_the_first_queue_is_claimed_at_once(queue: str, expected: str) -> None:
    worker = PlayedWorker(QueueQuotas.parse("first,second", is_strict=True)).rest()
    worker.timetable.hear({queue}, NOW)
    assert kind(worker.next_request()) == expected


@pytest.mark.parametrize("is_heard_first", [True, False])
def test_after_a_claim_that_left_something_behind_all_queues_are_claimed_from(
    is_heard_first: bool,
) -> None:
    worker = PlayedWorker(QueueQuotas()).rest()
    worker.timetable.hear({ANYWHERE}, NOW)
    assert kind(worker.next_request()) == "look for 1"
    if is_heard_first:
        worker.timetable.hear({"mail"}, NOW)
    worker.answer(1)
    worker.timetable.hear({"mail"}, NOW)
    assert kind(worker.next_request()) == "duties"
    worker.answer()
    assert kind(worker.next_request()) == "look for 1"


def test_tasks_made_ready_by_duties_are_claimed_before_announced_ones() -> None:
    worker = PlayedWorker(QueueQuotas()).rest()
    worker.timetable.look_again()
    worker.next_request()
    worker.answer()
    assert kind(worker.next_request()) == "duties"
    worker.timetable.hear({"mail"}, NOW)
    worker.answer(has_ready=True)
    assert kind(worker.next_request()) == "look for 1"


def test_a_notification_while_all_slots_are_busy_is_served_with_the_next_record() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=0).rest()
    worker.timetable.look_again()
    worker.timetable.hear({"mail"}, NOW)
    assert kind(worker.next_request()) == "duties"
    worker.answer()
    worker.slots = 1
    worker.pending.outcomes.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW))

    request = worker.next_request()

    assert request is not None
    assert (kind(request), len(request.outcomes)) == ("look for 1", 1)


def test_a_worker_that_always_has_something_to_write_serves_its_duties_in_turns() -> None:
    worker = PlayedWorker(QueueQuotas())
    served = []
    for number in range(6):
        worker.pending.outcomes.append(Outcome(number, OutcomeKind.SUCCEEDED, NOW))
        worker.timetable.serve_duties_by(NOW)
        served.append(kind(worker.next_request()))
        worker.answer(1)
    assert served == ["look for 1", "duties"] * 3


# What is claimed

played = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connection() -> BaseDatabaseWrapper:
    return connections["default"]


def claims_of(queues: QueueQuotas) -> Claims:
    return Claims(queues, worker_name="w1", slots=1, lease_duration=LEASE)


@played
@pytest.mark.postgresql_only
def test_one_statement_claims_what_was_announced(connection: BaseDatabaseWrapper) -> None:
    noop.using(queue_name="mail").enqueue_many([((), {})] * 3)
    noop.using(queue_name="other").enqueue()
    claims = claims_of(QueueQuotas())
    with CaptureQueriesContext(connection) as queries:
        claimed = claims.claim_announced(connection, 2, [], ["mail"])
    assert [row.queue_name for row in claimed] == ["mail", "mail"]
    assert len(queries) == 1
    rest = claims.look_and_claim(connection, 5, [])
    assert sorted(row.queue_name for row in rest) == ["mail", "other"]
    assert Queue.objects.filter(name="mail").exists()


@played
@pytest.mark.postgresql_only
def test_a_queue_whose_tasks_were_all_claimed_at_once_is_seen_nonetheless(
    connection: BaseDatabaseWrapper,
) -> None:
    noop.using(queue_name="mail").enqueue()
    claims = claims_of(QueueQuotas())
    assert len(claims.claim_announced(connection, 1, [], ["mail"])) == 1
    assert claims.look_and_claim(connection, 1, []) == []
    assert Queue.objects.filter(name="mail").exists()


@played
def test_a_paused_queue_is_not_claimed_from_though_it_was_announced(
    connection: BaseDatabaseWrapper,
) -> None:
    pause("mail")
    noop.using(queue_name="mail").enqueue()
    assert claims_of(QueueQuotas()).claim_announced(connection, 1, [], ["mail"]) == []


@played
def test_a_name_that_the_worker_cannot_run_is_left_though_it_was_announced(
    connection: BaseDatabaseWrapper,
) -> None:
    noop.enqueue()
    claims = claims_of(QueueQuotas())
    assert claims.claim_announced(connection, 1, [noop.name], ["default"]) == []


# What an enqueue announces


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The notifications that a session hears while a worker sleeps."""
    registered("w1")
    Worker.objects.update(is_idle=True)
    listening, heard = open_worker_connection(silence=10), list[str]()
    listener = Listener(listening, heard.append)
    listener.start()

    class Heard(list[str]):
        def __iter__(self) -> Iterator[str]:
            wait_until(lambda: listener.hear() or heard, what="a notification")
            return iter(heard)

    yield Heard()
    listening.close()


@played
@pytest.mark.postgresql_only
def test_a_session_leaves_out_what_it_has_made_ready_itself_but_hears_its_stops(
    connection: BaseDatabaseWrapper,
) -> None:
    own, heard = open_worker_connection(silence=10), list[str]()
    listener = Listener(own, heard.append)
    listener.start()
    with listener.leaving_out_own_work():
        notify(own, ANYWHERE)
        notify(own, STOP)
        notify(connection, ANYWHERE)
        wait_until(lambda: fetch(own, "SELECT 1") and ANYWHERE in heard, what="the other's")
    notify(own, ANYWHERE)
    wait_until(lambda: fetch(own, "SELECT 1") and len(heard) > 2, what="its own")
    own.close()
    assert heard == [STOP, ANYWHERE, ANYWHERE]


@played
@pytest.mark.postgresql_only
@pytest.mark.parametrize(
    ("options", "payload"),
    [
        ({}, "mail"),
        ({"deadline": 60}, "mail"),
        ({"run_after": 60}, ANYWHERE),
        ({"worker_names": ["w1"]}, ANYWHERE),
        ({"workers": 2}, ANYWHERE),
        ({"broadcast": True}, ANYWHERE),
    ],
    ids=str,
)
@pytest.mark.parametrize("number", [1, 2])
def test_an_enqueue_names_the_queue_where_any_worker_may_take_the_task_at_once(
    heard: list[str], options: dict[str, Any], payload: str, number: int
) -> None:
    task = noop.using(queue_name="mail", **options)
    if number == 1:
        task.enqueue()
    else:
        task.enqueue_many([((), {})] * number)
    assert list(heard) == [payload]


@played
@pytest.mark.postgresql_only
def test_a_transaction_announces_every_queue(heard: list[str]) -> None:
    with atomic():
        noop.using(queue_name="mail").enqueue()
        noop.using(queue_name="web").enqueue()
        noop.using(queue_name="mail").enqueue()
    assert list(heard) == ["mail", "web"]


def test_no_queue_has_the_name_of_a_request_to_stop() -> None:
    with pytest.raises(ValueError, match="queue_name"):
        noop.using(queue_name=STOP)


# Real workers, whose next poll is far away

real = [pytest.mark.slow, pytest.mark.direct_only, pytest.mark.postgresql_only]


class Idle:
    """A worker that listens, has one slot and claims nothing ahead."""

    def __init__(self, start_worker: StartWorker, *flags: str) -> None:
        start_worker(
            "--poll-interval", "300", "--concurrency", "1", "--name", "w1", *flags,
            settings={"CLAIM_AHEAD": 0},
        )  # fmt: skip
        self.rest()

    def rest(self) -> None:
        wait_until(Worker.objects.filter(is_idle=True).exists, what="an idle worker")
        wait_until(lambda: not Lease.objects.filter(status="running").exists())


@pytest.fixture
def idle(start_worker: StartWorker, request: pytest.FixtureRequest) -> Idle:
    return Idle(start_worker, *getattr(request, "param", []))


def notes(count: int) -> list[str]:
    """The notes of the bodies, in the order in which they ran, once there are so many."""
    wait_until(lambda: Effect.objects.count() >= count, 60, what=f"{count} bodies")
    return list(Effect.objects.order_by("id").values_list("note", flat=True))


class TestRealWorker:
    pytestmark = real

    def test_a_task_that_names_the_worker_goes_before_ordinary_ones(self, idle: Idle) -> None:
        for _ in range(5):
            idle.rest()
            Effect.objects.all().delete()
            with atomic():
                mark.enqueue("ordinary")
                mark.enqueue("ordinary")
                mark.using(worker_names=["w1"]).enqueue("named")
            assert notes(3) == ["named", "ordinary", "ordinary"]

    @pytest.mark.parametrize("idle", [["--queues", "high,low", "--strict"]], indirect=True)
    def test_strict_order_holds_among_what_came_together(self, idle: Idle) -> None:
        for _ in range(5):
            idle.rest()
            Effect.objects.all().delete()
            with atomic():
                mark.using(queue_name="low").enqueue("low")
                mark.using(queue_name="low").enqueue("low")
                mark.using(queue_name="high").enqueue("high")
            assert notes(3) == ["high", "low", "low"]

    @pytest.mark.parametrize(
        "idle", [[], ["--queues", "a=5,b,c"], ["--queues", "a,b,c", "--strict"]], indirect=True
    )
    def test_every_queue_of_one_transaction_is_served_at_once(self, idle: Idle) -> None:
        with atomic():
            for queue in ("c", "b", "a", "not-mine"):
                mark.using(queue_name=queue).enqueue(queue)
                mark.using(queue_name=queue, run_after=0.5).enqueue(queue)
        assert set(notes(6)) >= {"a", "b", "c"}

    @pytest.mark.parametrize("idle", [["--queues", "stop"]], indirect=True)
    def test_a_queue_may_be_called_stop(self, idle: Idle) -> None:
        mark.using(queue_name="stop").enqueue("done")
        assert notes(1) == ["done"]

    def test_tasks_announced_to_a_busy_worker_run_once_it_is_free(
        self, idle: Idle, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        append_and_wait.enqueue(str(tmp_path / "effects"), str(go))
        wait_until((tmp_path / "effects").exists, what="a running body")
        mark.using(queue_name="other").enqueue("other")
        mark.enqueue("ordinary")
        mark.using(worker_names=["w1"]).enqueue("named")
        time.sleep(0.2)  # For its notifications; the order below does not depend on it.
        go.touch()
        order = notes(3)
        assert sorted(order) == ["named", "ordinary", "other"]
        assert order.index("named") < order.index("ordinary")
