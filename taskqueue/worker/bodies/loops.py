"""The event loops on which the `async def` bodies of a child run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from taskqueue.worker.bodies.context import Context, _current
from taskqueue.worker.bodies.interrupts import Interruption
from taskqueue.worker.connections import SYNC_THREAD, end_copy


class EventLoop:
    """An event loop for `async def` bodies, shared by all of them."""

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
            # In an empty context, so that no attempt keeps asyncio's log records about this loop.
            self._loop = contextvars.Context().run(asyncio.new_event_loop)
        return self._loop


class OwnLoop(EventLoop):
    """A loop that the slot's thread runs itself, while a body runs or it has nothing to do."""

    def __init__(self) -> None:
        self._is_waiting = False

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        loop = self._made()
        task = loop.create_task(interruptible(make, context, interruption))
        # After the first step, in which many bodies end.
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
        """Run the loop until `is_over()`, which is checked whenever a body ends, and on `wake`."""
        loop = self._made()
        self._is_waiting = True
        while not is_over():
            _run_on(loop)
        self._is_waiting = False

    def make(self) -> None:
        """Create the loop, even if nothing runs on it."""
        self._made()

    @property
    def is_made(self) -> bool:
        """Whether anything has run on it yet."""
        return self._loop is not None

    def wake(self) -> None:
        """Make the loop check again. Any thread may call this."""
        if self._is_waiting and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


class LoopThread(EventLoop):
    """A loop in a separate thread, which slots share."""

    def __init__(self) -> None:
        self._starting = threading.Lock()

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        body = interruptible(make, context, interruption)
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
    """Run the loop until it is stopped, or until a body raises SystemExit or KeyboardInterrupt.

    asyncio passes these two to the body's waiter and also out of the loop, on which other slots
    wait for their bodies.
    """
    with suppress(SystemExit, KeyboardInterrupt):
        loop.run_forever()


async def interruptible(
    make: Callable[[], Coroutine[Any, Any, Any]], context: Context, interruption: Interruption
) -> Any:
    """Run a body; if it was interrupted, raise the reason instead of its cancellation."""
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
