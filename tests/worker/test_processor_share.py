"""The processor time that a worker reports of itself and its children."""

from __future__ import annotations

import os
import sys
import time

import pytest

from taskqueue.worker.memory import ProcessorShare, processor_seconds

GONE = 2**22 + 1
"""Above the highest process id."""


@pytest.mark.skipif(sys.platform != "linux", reason="other hosts do not tell")
def test_the_share_is_what_was_used_since_the_last_look() -> None:
    share = ProcessorShare()
    assert share.look([os.getpid(), GONE]) is None
    before = time.process_time()
    while time.process_time() < before + 0.1:
        pass
    used = share.look([os.getpid(), GONE])
    assert used is not None
    assert used > 0


def test_of_processes_that_the_host_does_not_tell_of_nothing_is_known() -> None:
    share = ProcessorShare()
    assert processor_seconds(GONE) is None
    assert [share.look([GONE]) for _ in range(2)] == [None, None]
