"""Carry out the parent's orders in a child: start, recall and interrupt bodies."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.definition import registry
from taskqueue.engine.tally import Tally
from taskqueue.worker import frames
from taskqueue.worker.bodies.definition_terms import DefinitionTerms
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.interrupts import INTERRUPTS, Interruption, TimeLimits
from taskqueue.worker.bodies.loops import LoopThread
from taskqueue.worker.bodies.memory_room import MemoryRoom
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.bodies.reporting import Channel, flush_for_ever, keep_logs
from taskqueue.worker.bodies.slots import MainSlot, Slot, ThreadSlot
from taskqueue.worker.connections import SYNC_THREAD, keep_from_copies, unforked
from taskqueue.worker.frames import WHOLE, Frame, Unpacker
from taskqueue.worker.memory import resident_megabytes

READ_SIZE = 1 << 18
# Seconds by which a first body precedes the declarations, which need much of the engine.
FIRST_BODY = 0.1


class OrderRunner:
    """Runs the bodies of orders in slots, while threads listen to the parent and enforce limits."""

    def __init__(self, sock: socket.socket, *, setup: dict[str, Any]) -> None:
        self._socket = sock
        keep_from_copies(sock)
        self._worker_name: str = setup["worker_name"]
        self._declares: bool = setup["declares"]
        self._max_memory: float | None = setup["max_memory"]
        self._channel = Channel(sock, max_log=get_settings().MAX_LOG)
        keep_logs()
        SYNC_THREAD.install()
        loop = LoopThread()
        is_process = self._is_process = setup["pool"] == "process"
        self._room = MemoryRoom()
        self._slots: list[Slot] = (
            [MainSlot()] if is_process else [ThreadSlot(loop) for _ in range(setup["slots"])]
        )
        # What slots take at a time: a frame of orders for a single slot, one order for each of
        # several.
        self._orders: SimpleQueue[list[tuple[Any, ...]] | None] = SimpleQueue()
        # The orders that will run, by lease. A recalled order is not among them, though it is still
        # in the queue, and may have been sent again since.
        self._waiting: dict[int, tuple[Any, ...]] = {}
        self._running: dict[int, Interruption] = {}
        # The shares of orders whose bodies take less than a slot, by lease.
        self._shares: dict[int, int] = {}
        self._terms = DefinitionTerms(self._channel, is_process=is_process)
        self._limits = TimeLimits(self._interrupt)
        self._channel.on_progress = self._limits.renew
        self._lock = threading.Lock()
        self._has_ended = threading.Event()  # Whether a first attempt has ended.

    def run(self) -> None:
        """Work until the parent says to stop, or is gone."""
        _start_thread("listen", self._listen)
        _start_thread("limits", self._limits.watch)
        _start_thread("reports", partial(flush_for_ever, self._channel))
        self._terms.tell(registry.all())
        self._channel.send((frames.READY, _imported_files()))
        if self._declares:
            _start_thread("declare", self._declare)
        if isinstance(self._slots[0], MainSlot):
            self._work(self._slots[0])
            return
        threads = [_start_thread("slot", partial(self._work, slot)) for slot in self._slots]
        for thread in threads:
            thread.join()

    def _declare(self) -> None:
        self._has_ended.wait(FIRST_BODY)
        # Only now, because the first body needs little of the engine. A copy of the process that a
        # body makes meanwhile would find a module half imported.
        with unforked():
            from taskqueue.worker.bodies.declaring import declare

        declare(self._channel, worker_name=self._worker_name)

    # In the threads of slots

    def _work(self, slot: Slot) -> None:
        order: Order
        tally = Tally(lambda lease_id: order)
        for raw in self._next_orders(slot):
            order = Order._make(raw)
            share = self._shares.get(order.lease_id, WHOLE)
            if slot.load:
                slot.make_room(share, partial(self._is_wanted, raw))
            if self._is_process and self._has_ended.is_set() and not self._room.has_room(order):
                # Otherwise memory of other bodies would count as its own. This child is replaced.
                self._channel.send((frames.OVERWEIGHT,))
                self._recall([order.lease_id])
                continue
            interruption = self._begin(raw, order)
            if interruption is None:
                continue
            slot.interruption = interruption
            self._limits.add(order)
            slot.freshness.before_task()
            attempt = Attempt(order, interruption.context, tally)
            if share < WHOLE and not _is_async(order.name):
                report = partial(self._report, order.lease_id)
                slot.begin_in_thread(attempt, share, interruption, report)
            elif share < WHOLE:
                report = partial(self._end, slot, order.lease_id)
                slot.begin(attempt, share, interruption, report)
            else:
                self._end(slot, order.lease_id, attempt.run(slot.call))
            if attempt.definition is not None and attempt.definition.is_async:
                self._terms.tell([attempt.definition])

    def _end(self, slot: Slot, lease_id: int, frame: Frame) -> None:
        """Report an attempt that ran in the slot's thread, and clean up there."""
        self._report(lease_id, frame)
        slot.freshness.after_task()

    def _report(self, lease_id: int, frame: Frame) -> None:
        """Tell the parent how an attempt ended. Any thread may call this."""
        with self._lock:
            self._running.pop(lease_id, None)
            self._shares.pop(lease_id, None)
        self._limits.remove(lease_id)
        self._channel.send(frame)
        self._channel.forget(lease_id)
        if not self._has_ended.is_set():
            self._has_ended.set()
        if self._max_memory is not None and resident_megabytes() > self._max_memory:
            self._channel.send((frames.OVERWEIGHT,))

    def _is_wanted(self, raw: tuple[Any, ...]) -> bool:
        return self._waiting.get(raw[0]) is raw

    def _next_orders(self, slot: Slot) -> Iterator[tuple[Any, ...]]:
        while (orders := slot.next_orders(self._orders)) is not None:
            yield from orders

    def _begin(self, raw: tuple[Any, ...], order: Order) -> Interruption | None:
        """Record that a body runs. Return None if its order was recalled."""
        context = order.context(self._worker_name, self._channel)
        with self._lock:
            if self._waiting.get(order.lease_id) is not raw:
                return None
            del self._waiting[order.lease_id]
            interruption = self._running[order.lease_id] = Interruption(context)
        return interruption

    # In the threads that listen and keep limits

    def _interrupt(self, lease_id: int, why: str, detail: str) -> None:
        if interruption := self._find(lease_id):
            error = INTERRUPTS[why](detail)
            if why == frames.STOPPED:
                interruption.context._request_stop(detail)
            else:
                interruption.context._announce_limit(error)
            interruption.interrupt(error)
        else:
            # Its body may not have begun: the parent then decides anew.
            self._recall([lease_id])

    def _ask(self, lease_id: int, reason: str) -> None:
        if interruption := self._find(lease_id):
            interruption.context._request_stop(reason)

    def _find(self, lease_id: int) -> Interruption | None:
        with self._lock:
            return self._running.get(lease_id)

    def _listen(self) -> None:
        """Obey the parent, and end when it is gone."""
        unpacker = Unpacker()
        with suppress(OSError):
            while data := self._socket.recv(READ_SIZE):
                for frame in unpacker.feed(data):
                    self._obey(frame)
        os._exit(0)

    def _obey(self, frame: Frame) -> None:
        match frame[0]:
            case frames.RUN:
                with self._lock:
                    self._waiting.update((order[0], order) for order in frame[1])
                    if len(frame) > 2:
                        self._shares.update(frame[2])
                if len(self._slots) == 1:
                    self._orders.put(frame[1])
                    self._slots[0].wake()
                else:
                    for order in frame[1]:
                        self._orders.put([order])
            case frames.RECALL:
                self._recall(frame[1])
            case frames.ASK:
                self._ask(*frame[1:])
            case frames.INTERRUPT:
                self._interrupt(*frame[1:])
            case frames.SUSPECT:
                for slot in self._slots:
                    slot.suspect()
            case frames.EXIT:
                for slot in self._slots:
                    self._orders.put(None)
                    slot.wake()

    def _recall(self, lease_ids: list[int]) -> None:
        """Give back orders whose bodies have not started."""
        with self._lock:
            recalled = [lease_id for lease_id in lease_ids if lease_id in self._waiting]
            for lease_id in recalled:
                del self._waiting[lease_id]
                self._shares.pop(lease_id, None)
        self._slots[0].wake()
        self._channel.send((frames.RECALLED, recalled))


def _is_async(name: str) -> bool:
    """Return whether the body of that definition is an `async def`, if it is known."""
    definition = registry.find(name)
    return definition is None or definition.is_async


def _start_thread(name: str, target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, name=f"taskqueue-{name}", daemon=True)
    thread.start()
    return thread


def _imported_files() -> list[str]:
    """Return the files of the project's modules, and of their imports outside of site-packages."""
    paths = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return [path for path in paths if path and "site-packages" not in path]
