"""Signals that arrive while a worker is on its way out."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tests.conftest import StartWorker
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_gets_signals_until_it_has_ended_exits_with_0(
    start_worker: StartWorker, number: signal.Signals
) -> None:
    worker = start_worker("--concurrency", "1")

    def tell_again() -> bool:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, number)
        return worker.returncode is not None

    wait_until(tell_again, what="the worker's end")
    assert worker.wait() == 0
