"""People who cancel, stop, retry and pause during the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

from taskqueue import control
from taskqueue.core.states import FINISHED, PENDING
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Lease, Task
from tests.chaos import bad_bodies
from tests.chaos.faults.base import Fault
from tests.chaos.faults.processes import kill_a_child
from tests.chaos.kinds import Kind
from tests.worker_process import wait_until

STUBBORN = "stubborn"
WHO = {"by": "chaos", "reason": "at random"}


class Commands(Fault):
    """Tasks are cancelled, stopped and retried, the queue is paused, children are killed."""

    name = "commands"
    expectation = "what is stopped ends in its grace as cancelled, and never succeeds later"
    share = 0.7
    seconds = 9.0
    fleet = (("process", 2), ("process", 2))
    also_ends = frozenset({"cancelled"})

    def prepare(self) -> None:
        self.stage.kinds.append(
            Kind(
                name=STUBBORN, weight=0.6, definition=bad_bodies.never_end,
                arguments=lambda path, chance: (path,), ends=frozenset({"cancelled"}), most=1,
            )
        )  # fmt: skip
        super().prepare()
        for _ in range(2):  # There is one in any case.
            stubborn = bad_bodies.never_end.using(priority=20, metadata={"kind": STUBBORN})
            stubborn.enqueue(str(self.stage.journal))

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.05)
        acts: list[Callable[[], None]] = [
            self._cancel, self._stop, self._stop, self._retry, self._pause, self._kill
        ]  # fmt: skip
        while not stage.client.is_over.is_set():
            with suppress(TaskQueueError):
                self.chance.choice(acts)()
            self._stop_stubborn()
            stage.pause(0.02, 0.2)
        with suppress(AssertionError):
            wait_until(lambda: not self._stop_stubborn(), 60, what="the end of stubborn tasks")

    def _some(self, *statuses: str) -> UUID | None:
        ids = list(Task.objects.filter(status__in=statuses).values_list("id", flat=True)[:200])
        return self.chance.choice(ids) if ids else None

    def _cancel(self) -> None:
        if task_id := self._some(*PENDING):
            control.cancel(task_id, **WHO)

    def _stop(self) -> None:
        if task_id := self._some("running"):
            control.request_stop(task_id, **WHO)

    def _retry(self) -> None:
        finished = Task.objects.filter(status__in=FINISHED, unique_key=None)
        ids = list(finished.exclude(metadata__kind=STUBBORN).values_list("id", flat=True)[:200])
        if ids:
            control.retry(self.chance.choice(ids), **WHO)

    def _pause(self) -> None:
        control.pause("default", until=5, **WHO)
        self.stage.pause(0.1, 0.6)
        control.resume("default", **WHO)

    def _kill(self) -> None:
        kill_a_child(self.chance.choice(self.stage.alive()), self.chance)

    def _stop_stubborn(self) -> int:
        """Ask those to stop that would never end; how many have not ended."""
        asked = Lease.objects.filter(stop_requested_at__isnull=False, status="running")
        left = Task.objects.filter(metadata__kind=STUBBORN).exclude(status__in=FINISHED)
        for task in left.filter(status="running").exclude(leases__in=asked)[:5]:
            with suppress(TaskQueueError):
                control.request_stop(task.id, **WHO)
        return left.count()

    def look(self) -> Iterator[str]:
        if not Task.objects.filter(metadata__kind=STUBBORN).exists():
            yield "there was no stubborn task"
        asked = Lease.objects.filter(stop_requested_at__isnull=False)
        if not asked.exists():
            yield "nothing that ran was asked to stop"
        for lease in asked.filter(status="succeeded", stop_seen_at__isnull=False):
            yield f"{lease} succeeded though its stop was seen"
