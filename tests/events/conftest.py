"""What a process remembers of streams, though each test has other rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taskqueue.engine.events import hub
from tests.worker_process import wait_until


@pytest.fixture(autouse=True)
def _ended_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the thread that reads for streams end with the test: it has a connection."""
    monkeypatch.setattr(hub, "IDLE", 0.1)
    monkeypatch.setattr(hub, "POLL_LISTENING", 0.1)
    yield
    wait_until(lambda: hub.HUB.has_ended, what="the end of the thread that reads events")
