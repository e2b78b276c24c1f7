"""The slots of a child: its main thread in the process pool, many threads in the thread pool."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from typing import Any

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.worker.bodies.context import Context
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.interrupts import INTERRUPTS, Interruption, MainThread, raise_in_thread
from taskqueue.worker.bodies.loops import EventLoop, OwnLoop, interruptible
from taskqueue.worker.connections import Freshness, end_copy
from taskqueue.worker.frames import WHOLE, Frame

# Tells the parent how an attempt ended.
Report = Callable[[Frame], None]
INTERRUPTED = tuple(INTERRUPTS.values())


def _nothing() -> None: ...


class Slot:
    """A place where bodies run, one at a time."""

    interruption: Interruption
    # How much of it is taken while bodies share it, in parts of `WHOLE`.
    load = 0

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.freshness = Freshness()

    def call(
        self,
        definition: BaseDefinition[Any, Any],
        context: Context,
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Call a body. Raises its exception, or the reason for its interruption."""
        body = partial(definition.body, *args, **kwargs)
        if definition.is_async:
            return self.loop.run(body, context, self.interruption)
        return self.call_here(body)

    def call_here(self, body: Callable[[], Any]) -> Any:
        """Call a `def` body in this thread."""
        raise NotImplementedError

    def next_orders(self, orders: SimpleQueue[Any]) -> Any:
        """Wait for orders."""
        return orders.get()

    def make_room(self, share: int, is_wanted: Callable[[], bool]) -> None:
        """Wait until a body with this share can start, as long as it is still wanted."""

    def begin(
        self, attempt: Attempt, share: int, interruption: Interruption, report: Report
    ) -> None:
        """Begin an attempt beside others in this slot."""
        raise NotImplementedError

    def begin_in_thread(
        self, attempt: Attempt, share: int, interruption: Interruption, report: Report
    ) -> None:
        """Begin an attempt of a `def` body beside others, in a thread."""
        raise NotImplementedError

    def suspect(self) -> None:
        """Have the connections checked before their next use. Any thread may call this."""
        self.freshness.is_suspect = True

    def wake(self) -> None:
        """Wake the slot: orders have come, or were recalled. Any thread may call this."""


class MainSlot(Slot):
    """The main thread of a child."""

    loop: OwnLoop

    def __init__(self) -> None:
        super().__init__(OwnLoop())
        self._main = MainThread()
        # The shares of ended attempts, and the reports of those that ended on the loop.
        self._ended: deque[tuple[int, Callable[[], None]]] = deque()
        self._threads: list[BodyThread] = []
        self._idle_threads: list[BodyThread] = []

    def next_orders(self, orders: SimpleQueue[Any]) -> Any:
        self._settle()
        while self.loop.is_made and orders.empty():
            self.loop.run_until(lambda: bool(self._ended) or not orders.empty())
            self._settle()
        return orders.get()

    def make_room(self, share: int, is_wanted: Callable[[], bool]) -> None:
        while self.load and self.load + share > WHOLE and is_wanted():
            self.loop.run_until(lambda: bool(self._ended) or not is_wanted())
            self._settle()

    def begin(
        self, attempt: Attempt, share: int, interruption: Interruption, report: Report
    ) -> None:
        def start(make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
            self.load += share
            self.loop.start(interruptible(make, attempt.context, interruption), end)

        def end(task: asyncio.Task[Any]) -> None:
            self._ended.append((share, lambda: report(attempt.end(task.result))))

        if frame := attempt.begin(start):
            report(frame)

    def begin_in_thread(
        self, attempt: Attempt, share: int, interruption: Interruption, report: Report
    ) -> None:
        self.load += share
        thread = self._idle_threads.pop() if self._idle_threads else self._new_thread()

        def end(frame: Frame) -> None:
            # In another thread, because a body on the loop may hold the main thread up.
            report(frame)
            self._idle_threads.append(thread)
            self._ended.append((share, _nothing))
            self.wake()

        # The loop wakes this thread when the body ends.
        self.loop.make()
        thread.orders.put((attempt, interruption, end))

    def _new_thread(self) -> BodyThread:
        thread = BodyThread(self.loop)
        self._threads.append(thread)
        return thread

    def suspect(self) -> None:
        super().suspect()
        for thread in self._threads:
            thread.suspect()

    def _settle(self) -> None:
        """Free the shares of ended attempts, and report these; the loop does not run meanwhile."""
        while self._ended:
            share, report = self._ended.popleft()
            self.load -= share
            report()

    def wake(self) -> None:
        self.loop.wake()

    def call_here(self, body: Callable[[], Any]) -> Any:
        self._main.arm()
        try:
            self.interruption.enter(self._main.raise_in_body)
            return body()
        finally:
            end_copy()
            self._main.disarm()
            self.interruption.leave()


class ThreadSlot(Slot):
    """One thread of a child."""

    def call_here(self, body: Callable[[], Any]) -> Any:
        interruption = self.interruption
        try:
            interruption.enter(partial(raise_in_thread, threading.get_ident()))
            return body()
        except INTERRUPTED as raised:
            # The interpreter raised the class without a message; `error` has the reason.
            error = interruption.error or raised
            raise error.with_traceback(raised.__traceback__) from None
        finally:
            end_copy()
            interruption.leave()
            self._absorb_late_interrupt()

    def _absorb_late_interrupt(self) -> None:
        """Let an exception that was set at the last moment arrive here, not in the next body."""
        if self.interruption.error is None:
            return
        try:
            for _ in range(100):
                time.sleep(0)
        except INTERRUPTED:
            pass


class BodyThread(ThreadSlot):
    """A thread in which `def` bodies run beside others of a slot, one after the other."""

    def __init__(self, loop: EventLoop) -> None:
        super().__init__(loop)
        self.orders: SimpleQueue[tuple[Attempt, Interruption, Report]] = SimpleQueue()
        threading.Thread(target=self._work, name="taskqueue-body", daemon=True).start()

    def _work(self) -> None:
        while True:
            attempt, self.interruption, end = self.orders.get()
            self.freshness.before_task()
            frame = attempt.run(self.call)
            self.freshness.after_task()
            end(frame)
            del attempt, end, frame
