"""Claims that a worker's main thread leaves for its database thread while it sleeps."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.notify import ANYWHERE, PLACES, notify
from taskqueue.engine.statement import fetch
from taskqueue.models import Lease
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.main_loop import MainLoop
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.standing import StandingClaim
from taskqueue.worker.wakeup import Signals, WakePipe
from tests.sample.tasks import noop
from tests.worker.played import NOW, PlayedWorker
from tests.worker.played_session import new_session
from tests.worker_process import wait_until

# When there is one


def test_a_worker_that_rests_leaves_a_claim_for_its_free_slots() -> None:
    worker = PlayedWorker(slots=2).rest()
    claim = worker.coordinator.standing_claim(NOW)
    assert claim is not None
    assert (claim.want, claim.announced, claim.writes) == (2, (), False)


@pytest.mark.parametrize(
    "before",
    [
        lambda worker: worker.timetable.look_again(),
        lambda worker: worker.pending.outcomes.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW)),
        lambda worker: worker.coordinator.outage.begin(OSError(), NOW),
        lambda worker: setattr(worker, "slots", 0),
        lambda worker: worker.thread.send(Exchange()),
        lambda worker: worker.second.send(Exchange()),
    ],
    ids=["a look", "a record", "an outage", "no slot", "a request", "a batch"],
)
def test_a_worker_leaves_no_claim_where_something_else_goes_before(
    before: Callable[[PlayedWorker], object],
) -> None:
    worker = PlayedWorker(slots=2).rest()
    before(worker)
    assert worker.coordinator.standing_claim(NOW) is None


@pytest.mark.parametrize(
    ("queues", "heard", "expected"),
    [
        ("", {"mail"}, ["mail"]),
        ("mail,web", {"web", "other"}, ["web"]),
        ("mail", {"web"}, []),
        ("", {"mail", ANYWHERE}, []),
        ("", {"mail", PLACES}, []),
    ],
)
def test_only_what_names_queues_of_the_worker_begins_a_claim(
    queues: str, heard: set[str], expected: list[str]
) -> None:
    worker = PlayedWorker(QueueQuotas.parse(queues) if queues else QueueQuotas())
    assert worker.timetable.queues_to_claim(heard) == expected


def test_in_strict_order_only_the_first_queue_begins_a_claim() -> None:
    timetable = PlayedWorker(QueueQuotas.parse("first,second", is_strict=True)).timetable
    assert timetable.queues_to_claim({"first"}) == ["first"]
    assert timetable.queues_to_claim({"second"}) == []


# Which thread gets it


def test_a_claim_that_was_taken_back_does_not_begin() -> None:
    standing = StandingClaim(deque(["mail"]), list)
    standing.leave(Exchange())
    assert standing.take_back() is None
    assert standing.begin() is None
    assert standing.is_announced


def test_a_claim_that_has_begun_answers_what_was_heard_and_is_not_taken_back() -> None:
    standing, claim = StandingClaim(deque(["mail"]), list), Exchange()
    standing.leave(claim)
    assert standing.begin() is claim
    assert (claim.announced, standing.is_announced) == (["mail"], False)
    assert standing.begin() is None
    assert standing.take_back() is claim
    assert standing.take_back() is None


def test_one_of_two_threads_gets_each_claim() -> None:
    heard: deque[str] = deque()
    standing = StandingClaim(heard, list)
    left: SimpleQueue[bool] = SimpleQueue()
    begun: list[Exchange] = []

    def begin() -> None:
        while left.get():
            heard.append("mail")
            if (claim := standing.begin()) is not None:
                begun.append(claim)

    thread = threading.Thread(target=begin)
    thread.start()
    known = []
    for _ in range(2000):
        standing.leave(Exchange())
        left.put(True)
        if (claim := standing.take_back()) is not None:
            known.append(claim)
    left.put(False)
    thread.join()
    assert known == begun


# What the main thread heeds first


class SleepingLoop(MainLoop):
    """A loop of a worker that rests."""

    def __init__(self, wake_pipe: WakePipe) -> None:
        self._wake_pipe, self._coordinator = wake_pipe, PlayedWorker(slots=2).rest().coordinator


@pytest.fixture
def wake_pipe() -> Iterator[WakePipe]:
    pipe = WakePipe()
    yield pipe
    pipe.close()


def test_nothing_is_claimed_before_a_main_thread_that_was_woken_has_looked(
    wake_pipe: WakePipe,
) -> None:
    loop = SleepingLoop(wake_pipe)
    assert loop._queues_to_claim({"mail"}) == ["mail"]
    wake_pipe.wake()
    assert loop._queues_to_claim({"mail"}) == ()
    wake_pipe.clear()
    assert loop._queues_to_claim({"mail"}) == ["mail"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_nothing_is_claimed_though_its_handler_has_not_run(
    wake_pipe: WakePipe, number: signal.Signals
) -> None:
    loop = SleepingLoop(wake_pipe)
    # The handler wakes nobody here: the interpreter does.
    with Signals(lambda: None, writer=wake_pipe.writer):
        signal.raise_signal(number)
        assert loop._queues_to_claim({"mail"}) == ()
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize("is_reported", [True, False])
def test_the_main_thread_rests_for_the_report_of_a_claim_unless_it_is_there(
    is_reported: bool,
) -> None:
    worker, rests = PlayedWorker(slots=2).rest(), list[float]()
    loop: Any = MainLoop.__new__(MainLoop)
    loop._coordinator, loop._recorder = worker.coordinator, worker.recorder
    loop._dispatcher, loop._pool = worker.dispatcher, worker.dispatcher.pool
    loop._moments = lambda now: [now]
    loop._wake_pipe = SimpleNamespace(wait=rests.append)
    loop._watch = SimpleNamespace(wait=lambda pause: [])
    loop._sockets = SimpleNamespace(watch_outgoing=lambda children: None)
    loop._database = SimpleNamespace(
        leave=lambda claim: None, take_back=lambda: True, has_report=is_reported
    )
    loop._sleep()
    assert bool(rests) is not is_reported


# A thread that fails


def test_a_worker_ends_with_an_error_if_its_database_thread_fails() -> None:
    wakes: SimpleQueue[None] = SimpleQueue()
    session: Any = SimpleNamespace()  # Without a listener: the thread cannot even wait.
    thread = DatabaseThread(session, lambda: wakes.put(None))
    wakes.get(timeout=60)
    with pytest.raises(RuntimeError, match="database thread") as raised:
        thread.report()
    assert isinstance(raised.value.__cause__, AttributeError)


def test_the_last_report_of_a_database_thread_precedes_its_failure() -> None:
    def fail() -> None:
        raise RuntimeError("can't start new thread")

    session: Any = SimpleNamespace(listener=None, close=lambda: None)
    imports: Any = SimpleNamespace(begin=fail)
    request = Exchange()
    request.has_steps = True  # The imports begin after the report.
    wakes: SimpleQueue[None] = SimpleQueue()
    thread = DatabaseThread(session, lambda: wakes.put(None), imports=imports)
    thread.send(request)
    thread.thread.join(timeout=60)
    before = wakes.qsize()
    assert thread.report() is request  # It may have claimed tasks, and recorded outcomes.
    assert wakes.qsize() == before + 1
    with pytest.raises(RuntimeError, match="database thread"):
        thread.report()


# With a database


class Threads:
    """The database thread of a worker, and how often it has woken the main thread."""

    def __init__(self) -> None:
        self.is_free = True
        self.wakes: SimpleQueue[None] = SimpleQueue()
        heard: deque[str] = deque()
        self.session = new_session(heard.append)
        standing = StandingClaim(heard, lambda found: sorted(found) if self.is_free else ())
        self.database = DatabaseThread(
            self.session, lambda: self.wakes.put(None), standing=standing
        )
        self.ask(Exchange())

    def ask(self, request: Exchange) -> None:
        self.database.send(request)
        self.await_report()

    def await_report(self) -> Exchange:
        found: list[Any] = []
        wait_until(lambda: found.append(self.database.report()) or found[-1])
        assert found[-1].error is None
        return found[-1]  # type: ignore[no-any-return]


@pytest.fixture
def threads(db_committed: None) -> Iterator[Threads]:
    threads = Threads()
    yield threads
    threads.database.stop()
    assert not threads.database.thread.is_alive()


@pytest.fixture
def db_committed(transactional_db: None) -> None:
    """A database in which every thread sees what was committed."""


played = pytest.mark.postgresql_only


@played
def test_a_notification_begins_the_claim_while_the_main_thread_sleeps(threads: Threads) -> None:
    threads.database.leave(Exchange(want=1))
    noop.enqueue()
    notify(connection, "default")
    wait_until(lambda: Lease.objects.exists())
    assert threads.database.take_back()
    report = threads.await_report()
    assert (report.announced, len(report.claimed)) == (["default"], 1)


@played
@pytest.mark.parametrize("is_left", [True, False])
def test_a_notification_wakes_the_main_thread_where_nothing_may_begin(
    threads: Threads, is_left: bool
) -> None:
    threads.is_free = False
    if is_left:
        threads.database.leave(Exchange(want=1))
    noop.enqueue()
    while not threads.wakes.empty():
        threads.wakes.get()
    notify(connection, "default")
    threads.wakes.get(timeout=60)
    assert not threads.database.take_back()
    assert not Lease.objects.exists()


@played
def test_a_request_is_carried_out_though_a_claim_was_left_before(threads: Threads) -> None:
    threads.database.leave(Exchange(want=1))
    assert not threads.database.take_back()
    threads.ask(Exchange(looks_ahead=True))


@played
def test_a_connection_that_is_lost_between_two_requests_is_opened_again(threads: Threads) -> None:
    # The driver knows the number: only the thread may send a statement by its connection.
    process = threads.session.connection.connection.info.backend_pid
    fetch(connection, "SELECT pg_terminate_backend(%s)", [process])
    wait_until(lambda: threads.wakes.get(timeout=60) or threads.database.take_lost())
    assert threads.database.take_lost() is None
    threads.ask(Exchange())
    assert threads.database.owns_session
