"""A worker's coordinator and recorder, whose database, clock and slots the test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome
from taskqueue.engine.rows import Claimed
from taskqueue.worker.coordinator import Coordinator
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.leases import Leases, PendingWrites
from taskqueue.worker.meter import Meter
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.recorder import Recorder
from taskqueue.worker.state import WorkerOptions, WorkerState

NOW = 1000.0
EVERY_QUEUE = QueueQuotas()


class PlayedThread:
    """Keeps the requests of a coordinator; the test answers them."""

    def __init__(self) -> None:
        self.under_way: Exchange | None = None
        self._answer: Exchange | None = None
        self.owns_session = True
        self.poll_interval = 2.0

    def send(self, request: Exchange) -> None:
        assert self.under_way is None
        self.under_way = request

    def take_lost(self) -> None:
        """The connection is never lost."""

    @property
    def outcomes(self) -> list[Outcome]:
        return self.under_way.outcomes if self.under_way else []

    def overtake(self) -> None:
        if self.under_way is not None:
            self.under_way.is_overtaken = True

    def report(self) -> Exchange | None:
        answer, self._answer = self._answer, None
        self.under_way = None if answer else self.under_way
        return answer

    def answer(self, claimed: int = 0, *, has_ready: bool = False) -> None:
        """Report the request under way as done."""
        assert self.under_way is not None
        self.under_way.claimed = [a_claim(number) for number in range(claimed)]
        self.under_way.is_recorded = True
        if self.under_way.with_duties:
            self.under_way.has_ready, self.under_way.duties_at = has_ready, NOW + 60
        self._answer = self.under_way

    def put_off(self, until: float) -> None:
        """Report the request under way as one whose duties were put off."""
        assert self.under_way is not None
        self.under_way.is_recorded, self.under_way.duties_at = True, until
        self._answer = self.under_way

    def answer_as_carried_out(self) -> None:
        """Report the request under way as the test has carried it out itself."""
        self._answer = self.under_way

    def fail(self, error: Exception) -> None:
        """Report the request under way as one that the database has not carried out."""
        assert self.under_way is not None
        self.under_way.error = error
        self._answer = self.under_way


class PlayedWorker:
    """The coordinator of a worker, whose clock, slots and database the test plays."""

    def __init__(self, queues: QueueQuotas = EVERY_QUEUE, *, slots: int = 1) -> None:
        state = WorkerState(WorkerOptions(queues=queues), get_settings(), Meter(), lambda: None)
        self.slots = slots
        self.pending = PendingWrites()
        pool: Any = SimpleNamespace(
            ready=[], children=[], held=0, ahead=0, running=list, has_declared=True
        )
        self.dispatcher: Any = SimpleNamespace(
            state=state,
            pool=pool,
            pending=self.pending,
            held=0,
            free=0,
            wanted=lambda now: self.slots,
        )
        self.thread: Any = PlayedThread()
        self.second: Any = PlayedThread()
        self.recorder = Recorder(self.second, self.dispatcher, self.thread)
        self.coordinator = Coordinator(self.dispatcher, Leases(state), self.thread, self.recorder)
        self.timetable = self.coordinator.timetable

    def next_request(self, now: float = NOW) -> Exchange | None:
        """Return the request that it sends at that moment, if any."""
        if not self.coordinator.is_due(now):
            return None
        self.coordinator.send(now)
        assert isinstance(self.thread.under_way, Exchange)
        return self.thread.under_way

    def answer(self, claimed: int = 0, *, now: float = NOW, has_ready: bool = False) -> None:
        self.thread.answer(claimed, has_ready=has_ready)
        self.coordinator.take_in(now)

    def rest(self) -> PlayedWorker:
        """Look at everything, and find nothing."""
        while self.next_request():
            self.answer()
        return self


def a_claim(number: int) -> Claimed:
    values = dict.fromkeys(Claimed._fields) | {
        "lease_id": number, "task_id": str(number), "name": "noop", "args": "[]", "kwargs": "{}",
        "attempt": 1, "failures": 0, "max_attempts": 1, "crashes": 0, "options": "",
        "metadata": "", "queue_name": "default", "waited": 0.0,
    }  # fmt: skip
    return Claimed(**{name: values[name] for name in Claimed._fields})
