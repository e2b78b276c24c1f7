"""Orders of a child: sent, run, and called back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from taskqueue.worker import frames
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.state import WorkerOptions
from tests.sample.tasks import append_and_wait, append_to
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


class NoWatchdog:
    """Nobody ends the child but the test."""

    def live_until(self, process: int, deadline: float) -> None:
        """It lives until the test ends it."""

    def forget(self, process: int) -> None:
        """It is gone."""


class Told:
    """A child, and what it has said."""

    def __init__(self, child: ChildProcess) -> None:
        self.child = child
        self.said: list[frames.Frame] = []

    def has_said(self, *wanted: Any, times: int = 1) -> bool:
        """Whether so many frames begin like this."""
        self.said += self.child.receive()[0]
        return sum(frame[: len(wanted)] == wanted for frame in self.said) >= times

    def await_recall(self, lease_id: int, *, times: int = 1) -> None:
        wait_until(lambda: self.has_said(frames.RECALLED, [lease_id], times=times))

    def await_outcome(self, lease_id: int) -> None:
        wait_until(
            lambda: (
                self.has_said()
                and any(
                    f[0] == frames.SUCCEEDED and any(row[1] == lease_id for row in f[1])
                    for f in self.said
                )
            )
        )


@pytest.fixture
def told() -> Iterator[Told]:
    child = ChildProcess(
        WorkerOptions(name="w"), slots=1, declares=False, watchdog=cast(Any, NoWatchdog())
    )
    told = Told(child)
    wait_until(lambda: told.has_said(frames.READY))
    yield told
    child.kill()
    child.bury()


def order(lease_id: int, name: str, *args: Any) -> tuple[Any, ...]:
    """As the parent sends it."""
    made = Order(
        lease_id, f"task {lease_id}", name, 1, json.dumps(args), "{}", "", "", 0, 1, None, "q", None
    )
    return tuple(made)


def test_an_order_that_was_called_back_twice_never_runs(told: Told, tmp_path: Path) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    child, first = told.child, order(1, append_and_wait.name, str(journal), str(gate))
    again = order(2, append_to.name, str(journal), "called-back")
    child.send((frames.RUN, [first]))
    wait_until(journal.exists)
    for number in (1, 2):
        child.send((frames.RUN, [again]))
        child.send((frames.RECALL, [2]))
        told.await_recall(2, times=number)
    child.send((frames.RUN, [order(3, append_to.name, str(journal), "last")]))
    gate.touch()
    told.await_outcome(3)
    assert [line.split()[-1] for line in journal.read_text().splitlines()] == ["started", "last"]


def test_an_order_that_is_sent_again_runs_once(told: Told, tmp_path: Path) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    child, again = told.child, order(2, append_to.name, str(journal), "again")
    child.send((frames.RUN, [order(1, append_and_wait.name, str(journal), str(gate))]))
    wait_until(journal.exists)
    child.send((frames.RUN, [again]))
    child.send((frames.RECALL, [2]))
    told.await_recall(2)
    child.send((frames.RUN, [again]))
    child.send((frames.RUN, [order(3, append_to.name, str(journal), "last")]))
    gate.touch()
    told.await_outcome(3)
    told_of = [line.split()[-1] for line in journal.read_text().splitlines()]
    assert told_of == ["started", "again", "last"]


def test_an_order_that_is_interrupted_before_it_begins_comes_back(
    told: Told, tmp_path: Path
) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    first = order(1, append_and_wait.name, str(journal), str(gate))
    second = order(2, append_to.name, str(journal), "second")
    told.child.send(
        (frames.RUN, [first, second]), (frames.INTERRUPT, 2, frames.MEMORY, "too much memory")
    )

    told.await_recall(2)
    gate.touch()

    told.await_outcome(1)
    assert "second" not in journal.read_text()
