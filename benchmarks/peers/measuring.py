"""Measuring one queue: enqueue, drain, pickup and wait times, and recovery from a kill."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.peers.brokers import DRIVERS, PostgreSQL, Redis
from benchmarks.peers.peers import Peer, python

LONGEST = 60.0
"""Seconds after which a queue is taken to hang: its work is sized for some of them."""
POLL = 0.005
SETTLING = 5.0
"""Seconds after its last task in which a worker may still turn from busy to idle."""
FIRST, LAST = 0.25, 0.95
"""The shares of a drain between which its rate is taken: all workers have started by the first."""
NUMBER = struct.Struct("<q")


class Failed(RuntimeError):
    """A queue did not do what was asked; the message holds what it said."""


class Measured:
    """One queue on an empty broker of its own."""

    def __init__(self, peer: Peer, broker: PostgreSQL | Redis, slots: int) -> None:
        self._broker = broker
        self._folder = tempfile.TemporaryDirectory(prefix="taskqueue-peers-")
        self._file = Path(self._folder.name) / "bytes"
        self._file.touch()
        self._driver = f"with_{peer.driver}"
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")},
            **peer.env,
            broker.variable: broker.renew(),
            "PEERS_FILE": str(self._file),
            "PEERS_SLOTS": str(slots),
            "PATH": f"{python().parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(DRIVERS),
        }
        self.run("prepare")

    def __enter__(self) -> Measured:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def _command(self, *arguments: object) -> list[str]:
        return [str(python()), str(DRIVERS / "run.py"), self._driver, *map(str, arguments)]

    def run(self, *arguments: object) -> Any:
        """Run the driver to its end; the JSON in its last line."""
        try:
            done = subprocess.run(
                self._command(*arguments), cwd=DRIVERS, env=self._env, capture_output=True,
                text=True, timeout=LONGEST, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            message = f"{self._driver} {arguments} still runs after {LONGEST:.0f} s."
            raise Failed(message) from None
        if done.returncode:
            raise Failed(f"{self._driver} {arguments}: {done.stderr[-500:]}")
        lines = done.stdout.splitlines()
        return json.loads(lines[-1]) if lines else None

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """A worker with all its processes, which nothing of it outlives."""
        log = Path(self._folder.name) / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self._command("worker"), cwd=DRIVERS, env=self._env, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            kill(process)

    @property
    def written(self) -> int:
        """How many bytes the bodies have left."""
        return self._file.stat().st_size

    def wait(self, is_so: Callable[[], bool], longest: float = LONGEST) -> bool:
        """Wait until it is so; whether it came to be."""
        deadline = time.monotonic() + longest
        while not is_so():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        return True

    def said(self) -> str:
        """The end of what the workers wrote."""
        log = Path(self._folder.name) / "log"
        return log.read_text(errors="replace")[-500:] if log.exists() else ""

    # What is measured.

    def enqueue(self, how: str, count: int) -> float:
        """Tasks a second that one client enqueues."""
        return float(self.run("client", how, count))

    def drain(self, count: int, workers: int) -> float:
        """Tasks a second of that many workers, by the bodies that have run."""
        self.run("client", "fill", count)
        self._broker.settle()
        seen: list[tuple[float, int]] = []
        with ExitStack() as stack:
            processes = [stack.enter_context(self.worker()) for _ in range(workers)]

            def is_done() -> bool:
                if any(process.poll() is not None for process in processes):
                    raise Failed(f"A worker has ended.\n{self.said()}")
                seen.append((time.perf_counter(), self.written))
                return seen[-1][1] >= count

            if not self.wait(is_done):
                raise Failed(f"{self.written} of {count} tasks have run.\n{self.said()}")
        began = next(each for each in seen if each[1] >= FIRST * count)
        ended = next(each for each in seen if each[1] >= LAST * count)
        if self.written != count:
            raise Failed(f"{count} tasks ran {self.written} times.")
        return (ended[1] - began[1]) / (ended[0] - began[0])

    def idle(self, samples: int, seconds: float) -> dict[str, float]:
        """Pick-up by an idle worker in milliseconds; then what it asks and holds while idle."""
        with self.worker() as process:
            self.run("client", "moments", 1, 0.05)
            if not self.wait(lambda: self.written >= NUMBER.size):
                raise Failed(f"No task has run.\n{self.said()}")
            time.sleep(1)
            self.run("client", "moments", samples + 1, 0.3)
            if not self.wait(lambda: self.written >= NUMBER.size * (samples + 2)):
                raise Failed(f"{self.written // NUMBER.size - 2} of {samples} tasks have run.")
            # Without the first one of each client, with which some connect.
            late = [each[0] / 1e6 for each in NUMBER.iter_unpack(self._file.read_bytes())][2:]
            cuts = quantiles(late, n=100, method="inclusive")
            time.sleep(SETTLING)
            before, began = self._broker.questions(), time.monotonic()
            time.sleep(seconds)
            asked = (self._broker.questions() - before) / (time.monotonic() - began)
            root = psutil.Process(process.pid)
            memory = sum(
                each.memory_full_info().pss for each in (root, *root.children(recursive=True))
            )
        return {"p50": cuts[49], "p99": cuts[98], "asked": asked, "memory": memory / 1e6}

    def kill(self, tasks: int, longest: float) -> dict[str, float]:
        """Kill a worker amid its tasks; how many another one ends, and after how many seconds."""
        self.run("client", "hold", tasks, 2)
        with self.worker() as process:
            if not self.wait(lambda: self.written > 0):
                raise Failed(f"No task has started.\n{self.said()}")
            kill(process)
        killed = time.monotonic()
        with self.worker():
            self.wait(lambda: self._ended() >= tasks, longest)
            return {"ended": self._ended(), "of": tasks, "seconds": time.monotonic() - killed}

    def _ended(self) -> int:
        return self._file.read_bytes().count(b"e")


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker with all that it has started, in whatever group."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        for each in (*root.children(recursive=True), root):
            with suppress(psutil.NoSuchProcess):
                each.kill()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
