"""The slots of a child: its main thread in the process pool, many threads in the thread pool."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.worker.bodies.context import Context, _current
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.interrupts import INTERRUPTS, Interruption, MainThread, raise_in_thread
from taskqueue.worker.connections import SYNC_THREAD, Freshness, end_copy
from taskqueue.worker.frames import WHOLE, Frame

# Tells the parent what became of an attempt.
Report = Callable[[Frame], None]
INTERRUPTED = tuple(INTERRUPTS.values())


class EventLoop:
    """An event loop for `async def` bodies, the same for all of them."""

    _loop: asyncio.AbstractEventLoop | None = None

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        """Run a coroutine on the loop, and wait for its end in this thread."""
        raise NotImplementedError

    def _made(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            # In an empty context, so that no attempt keeps what asyncio logs about this loop.
            self._loop = contextvars.Context().run(asyncio.new_event_loop)
        return self._loop


class OwnLoop(EventLoop):
    """A loop that the thread of the slot runs itself, while it has a body or nothing to do."""

    def __init__(self) -> None:
        self._is_waiting = False

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        loop = self._made()
        task = loop.create_task(_interruptible(make, context, interruption))
        # Behind the first step, with which many bodies end.
        loop.call_soon(loop.stop)
        _run_on(loop)
        if not task.done():
            task.add_done_callback(lambda ended: loop.stop())
            while not task.done():
                _run_on(loop)
        return task.result()

    def start(
        self, body: Coroutine[Any, Any, Any], ended: Callable[[asyncio.Task[Any]], None]
    ) -> None:
        """Start a coroutine, which runs whenever this thread runs the loop."""
        task = self._made().create_task(body)
        task.add_done_callback(ended)
        task.add_done_callback(lambda ended: ended.get_loop().stop())

    def run_until(self, is_over: Callable[[], bool]) -> None:
        """Run what is on the loop until then; it is looked whenever a body ends, and on `wake`."""
        loop = self._made()
        self._is_waiting = True
        while not is_over():
            _run_on(loop)
        self._is_waiting = False

    @property
    def is_made(self) -> bool:
        """Whether anything has run on it yet."""
        return self._loop is not None

    def wake(self) -> None:
        """Look again. Any thread may call it."""
        if self._is_waiting and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


class LoopThread(EventLoop):
    """A loop in a thread of its own, which slots share."""

    def __init__(self) -> None:
        self._starting = threading.Lock()

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        body = _interruptible(make, context, interruption)
        return asyncio.run_coroutine_threadsafe(body, self._started()).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                run = partial(_run_for_ever, self._made())
                threading.Thread(target=run, name="taskqueue-loop", daemon=True).start()
            return self._made()


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        _run_on(loop)


def _run_on(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until somebody stops it, or a body ends like a program.

    asyncio hands SystemExit and KeyboardInterrupt to the body's waiter, and out of the loop
    besides, where others wait for the ends of theirs.
    """
    with suppress(SystemExit, KeyboardInterrupt):
        loop.run_forever()


async def _interruptible(
    make: Callable[[], Coroutine[Any, Any, Any]], context: Context, interruption: Interruption
) -> Any:
    """Run a body; raise what interrupted it instead of its cancellation."""
    _current.set(context)
    if context._span is not None:
        context._span.enter()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interruption.enter(lambda error: loop.call_soon_threadsafe(task.cancel))
    try:
        return await make()
    except asyncio.CancelledError as cancelled:
        if interruption.error is not None:
            raise interruption.error.with_traceback(cancelled.__traceback__) from None
        raise
    finally:
        end_copy()
        interruption.leave()
        SYNC_THREAD.after_body()


class Slot:
    """One place where bodies run, one at a time."""

    interruption: Interruption
    # What is taken of it while bodies share it, in parts of `WHOLE`.
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
        """Call a body. Raises what it raises, or the reason why it was interrupted."""
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
        """Wait until a body can start that takes this share, while it is wanted at all."""

    def begin(
        self, attempt: Attempt, share: int, interruption: Interruption, report: Report
    ) -> None:
        """Begin an attempt beside others in this slot."""
        raise NotImplementedError

    def wake(self) -> None:
        """Look again: orders have come, or were called back. Any thread may call it."""


class MainSlot(Slot):
    """The main thread of a child."""

    loop: OwnLoop

    def __init__(self) -> None:
        super().__init__(OwnLoop())
        self._main = MainThread()
        self._ended: deque[tuple[Attempt, int, asyncio.Task[Any], Report]] = deque()

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
            self.loop.start(_interruptible(make, attempt.context, interruption), end)

        def end(task: asyncio.Task[Any]) -> None:
            self._ended.append((attempt, share, task, report))

        if frame := attempt.begin(start):
            report(frame)

    def _settle(self) -> None:
        """Report the attempts that have ended, while the loop stands still."""
        while self._ended:
            attempt, share, task, report = self._ended.popleft()
            self.load -= share
            report(attempt.end(task.result))

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
            # The interpreter raised the class alone; the error knows why.
            error = interruption.error or raised
            raise error.with_traceback(raised.__traceback__) from None
        finally:
            end_copy()
            interruption.leave()
            self._absorb_late_interrupt()

    def _absorb_late_interrupt(self) -> None:
        """An exception set in the last moment arrives here, not in the next body."""
        if self.interruption.error is None:
            return
        try:
            for _ in range(100):
                time.sleep(0)
        except INTERRUPTED:
            pass
