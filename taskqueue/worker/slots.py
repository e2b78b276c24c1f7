"""The slots of a child: its main thread in the process pool, many threads in the thread pool."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.worker.connections import Freshness, end_copy, reset_connections
from taskqueue.worker.context import Context, _current
from taskqueue.worker.interrupts import INTERRUPTS, Interruption, MainThread, raise_in_thread

INTERRUPTED = tuple(INTERRUPTS.values())


class EventLoop:
    """An event loop in a thread of its own, which `async def` bodies share."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Any]],
        context: Context,
        interruption: Interruption,
    ) -> Any:
        """Run a coroutine on the loop, and wait for its end in this thread."""
        loop = self._started()

        async def body() -> Any:
            _current.set(context)
            task = asyncio.current_task()
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
                # Django's async ORM works in the thread that sync_to_async shares.
                await sync_to_async(reset_connections, thread_sensitive=True)()

        return asyncio.run_coroutine_threadsafe(body(), loop).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                # In an empty context, so that no attempt keeps what asyncio logs about this loop.
                self._loop = contextvars.Context().run(asyncio.new_event_loop)
                threading.Thread(
                    target=_run_for_ever, args=(self._loop,), name="taskqueue-loop", daemon=True
                ).start()
            return self._loop


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop on, whatever a body raises: others wait for theirs on it."""
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            # asyncio hands these to the body's waiter, and out of the loop besides.
            continue


class Slot:
    """One place where bodies run, one at a time."""

    interruption: Interruption

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


class MainSlot(Slot):
    """The main thread of a child."""

    def __init__(self, loop: EventLoop) -> None:
        super().__init__(loop)
        self._main = MainThread()

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
