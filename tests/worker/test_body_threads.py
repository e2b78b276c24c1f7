"""The threads in which `def` bodies run beside each other in a slot."""

from __future__ import annotations

import signal

from taskqueue.worker.bodies.interrupts import SIGNAL
from taskqueue.worker.bodies.slots import MainSlot


def test_every_thread_checks_its_connections_after_an_outage() -> None:
    before = signal.getsignal(SIGNAL)
    try:
        slot = MainSlot()
        idle, busy = slot._new_thread(), slot._new_thread()
        slot._idle_threads.append(idle)

        slot.suspect()

        assert all(each.freshness.is_suspect for each in (slot, idle, busy))
    finally:
        signal.signal(SIGNAL, before)
