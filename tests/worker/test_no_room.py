"""A host that has no room for another process: a worker goes on with the children that it has."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskqueue.conf import get_settings
from taskqueue.worker import children, forks
from taskqueue.worker.forks import Template
from taskqueue.worker.meter import Meter
from taskqueue.worker.pool import LONGEST_RESPAWN, SHORTEST_RESPAWN, Pool
from taskqueue.worker.state import WorkerOptions, WorkerState

NOW = 1000.0


class Host:
    """Starts processes, as `subprocess` does, if it has room for them."""

    DEVNULL = subprocess.DEVNULL

    def __init__(self) -> None:
        self.has_room = True
        self.started = 0

    def Popen(self, *arguments: Any, **options: Any) -> Any:  # noqa: N802
        if not self.has_room:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        self.started += 1
        return SimpleNamespace(pid=self.started, kill=lambda: None, wait=lambda timeout=None: 0)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    for module in (children, forks):
        monkeypatch.setattr(module, "subprocess", host)
    return host


@pytest.fixture
def pool() -> Iterator[Pool]:
    """For two children; none is started yet."""
    watchdog = SimpleNamespace(live_until=lambda *args: None, forget=lambda *args: None)
    state = WorkerState(WorkerOptions(concurrency=2), get_settings(), Meter(), lambda: None)
    pool = Pool(state, cast(Any, watchdog))
    yield pool
    for child in pool.children:
        child.socket.close()


def test_a_child_that_cannot_be_started_is_tried_again_after_growing_pauses(
    host: Host, pool: Pool
) -> None:
    host.has_room = False
    now, pauses = NOW, []
    for _ in range(10):
        assert pool.populate(now) == []
        assert pool.respawn_at is not None
        pauses.append(pool.respawn_at - now)
        assert pool.populate(pool.respawn_at - 0.01) == []
        now = pool.respawn_at
    assert pauses[:3] == [SHORTEST_RESPAWN, 2 * SHORTEST_RESPAWN, 4 * SHORTEST_RESPAWN]
    assert pauses[-1] == LONGEST_RESPAWN
    assert "Resource temporarily unavailable" in pool.trouble
    assert pool.is_broken
    host.has_room = True
    assert len(pool.populate(now)) == 2


def test_the_other_children_stay(host: Host, pool: Pool) -> None:
    first, second = pool.populate(NOW)
    pool.on_started(first, [])
    host.has_room = False
    pool.children.remove(second)
    second.socket.close()
    assert pool.populate(NOW + 1) == []
    assert pool.children == pool.ready == [first]


def test_a_lost_template_is_started_once_there_is_room(host: Host) -> None:
    template = Template()
    with template._opened():
        pass  # The other end is closed: the template is gone.
    template.is_loading = False
    host.has_room = False
    for _ in range(2):
        with pytest.raises(BlockingIOError):
            template.fork({}, [])
        assert not template.is_loading
    host.has_room = True
    assert template.fork({}, []) is None
    assert template.is_loading
    assert host.started == 1
    template.close()
