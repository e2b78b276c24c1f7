"""Faults of the network between one worker and the database."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator

from tests.chaos.faults.base import POSTGRESQL, TAKEN_OVER, Fault
from tests.chaos.faults.outages import no_crashes, through
from tests.chaos.fleet import LEASE, ChaosWorker
from tests.chaos.kinds import Kind


class Cut(Fault):
    """All connections of one worker are broken off, several times, and refused for a while."""

    name = "network_cut"
    expectation = "it reconnects; what it held goes on, or is run again without a crash counted"
    databases = POSTGRESQL

    def prepare(self) -> None:
        stage = self.stage
        self._proxy = stage.proxy()
        env = through(self._proxy.port, stage.database.environment())
        self.cut_off = stage.start_worker("process", 2, env=env)
        stage.start_fleet(("thread", 2))

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        for number in range(4):
            stage.await_load(0.1 + 0.15 * number)
            self._proxy.tell(self.chance.choice(("cut", "refuse")))
            stage.pause(0, 1.0)
            self._proxy.tell("open")
        stage.note(self.name, began, self.cut_off)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


class BlackHole(Fault):
    """Nothing of one worker's packets arrives, in both directions, for longer than its lease."""

    name = "network_black_hole"
    expectation = "the worker fences itself before its leases end; others take over; no hang"
    databases = POSTGRESQL
    is_quick = True
    takeover_limit = TAKEN_OVER
    seconds = 9.0
    order = "freeze"

    def prepare(self) -> None:
        stage = self.stage
        stage.kinds = _without_crashes(stage.kinds)
        self._proxy = stage.proxy()
        env = through(self._proxy.port, stage.database.environment())
        self.cut_off = stage.start_worker("process", 2, env=env)
        stage.start_fleet(("thread", 2))

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.15)
        stage.pause(0, 0.5)
        stage.await_lease(self.cut_off)
        began = stage.now()
        stage.hit(self.cut_off, lambda: self._proxy.tell(self.order))
        time.sleep(LEASE + self.chance.uniform(1.5, 4))
        self._proxy.tell("open")
        stage.note(self.name, began, self.cut_off)
        stage.await_load(1)


class HalfOpen(BlackHole):
    """The server hears one worker, and the worker does not hear the server."""

    name = "network_half_open"
    is_quick = False
    order = "mute"


class HostCutOff(Fault):
    """A host of its own, by a network namespace: its cable is pulled for longer than a lease."""

    name = "network_host_cut_off"
    expectation = "the worker fences itself before its leases end; others take over; no hang"
    databases = POSTGRESQL
    takeover_limit = TAKEN_OVER
    seconds = 9.0

    @classmethod
    def obstacle(cls) -> str:
        if not shutil.which("ip"):
            return "there is no program ip"
        name = f"tqprobe{os.getpid()}"
        if _ip("netns", "add", name, check=False):
            return "network namespaces are not permitted"
        _ip("netns", "del", name)
        return ""

    def prepare(self) -> None:
        stage = self.stage
        stage.kinds = _without_crashes(stage.kinds)
        number = os.getpid() % 60000
        self._space, self._here, there = f"tq{number}", f"tqh{number}", f"tqn{number}"
        network = f"10.{200 + number % 50}.{number // 250 % 250}"
        _ip("netns", "add", self._space)
        stage.at_end(lambda: _ip("netns", "del", self._space))
        _ip("link", "add", self._here, "type", "veth", "peer", "name", there)
        stage.at_end(lambda: _ip("link", "del", self._here, check=False))
        _ip("link", "set", there, "netns", self._space)
        _ip("addr", "add", f"{network}.1/30", "dev", self._here)
        _ip("link", "set", self._here, "up")
        for arguments in (
            ("addr", "add", f"{network}.2/30", "dev", there),
            ("link", "set", there, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", self._space, *arguments)
        # The server listens on the loopback interface alone: the proxy is its door here.
        proxy = stage.proxy()
        env = through(proxy.port, stage.database.environment(), host=f"{network}.1")
        prefix = ("ip", "netns", "exec", self._space)
        self.cut_off = stage.start_worker("process", 2, env=env, prefix=prefix)
        stage.start_fleet(("thread", 2))

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.15)
        stage.pause(0, 0.5)
        stage.await_lease(self.cut_off)
        began = stage.now()
        stage.hit(self.cut_off, lambda: _ip("link", "set", self._here, "down"))
        time.sleep(LEASE + self.chance.uniform(1.5, 4))
        _ip("link", "set", self._here, "up")
        stage.note(self.name, began, self.cut_off)
        self._await_return(self.cut_off)
        stage.await_load(1)

    def _await_return(self, worker: ChaosWorker) -> None:
        from taskqueue.models import Worker

        deadline = time.monotonic() + 20
        healed = self.stage.now()
        while time.monotonic() < deadline:
            row = Worker.objects.get(name=worker.name)
            if row.seen_at.timestamp() > healed and row.status == "running":
                return
            time.sleep(0.1)
        self.stage.problems.append("the worker gives no sign of life after its cable is back")


def _without_crashes(kinds: list[Kind]) -> list[Kind]:
    """Who takes over has one child: while that starts anew after a crash, nobody could."""
    return [kind for kind in kinds if kind.name != "crash_once"]


def _ip(*arguments: str, check: bool = True) -> int:
    return subprocess.run(["ip", *arguments], check=check, capture_output=True).returncode
