"""Run the suite as several pytests side by side: `python -m tests.side_by_side [arguments]`.

With `--quick` only what is not marked as slow, on SQLite.

What waits most of its time is begun at once. What computes comes after it, no more of it at once
than keeps the processors at work, and yields to the others: what they wait for would be late.
The first one's output is shown as it comes, each other's whole and after it. The exit code is 0
when all have passed, 128 and the signal's number after SIGINT or SIGTERM, else 1.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import randrange
from types import FrameType
from typing import IO

from tests.pooler import MODES

DATABASES = ("sqlite", "postgresql")
# What waits for leases to run out.
PATIENT = ["tests/chaos", "tests/guarantees", "tests/schedules/year"]
FACES = ["tests/admin", "tests/management", "tests/monitoring"]


def _all_but(folders: Sequence[str]) -> list[str]:
    return ["tests", *(f"--ignore={each}" for each in folders)]


SHARES = {
    "the patient": PATIENT,
    "tests/worker": ["tests/worker"],
    "the rest": _all_but(["tests/worker", "tests/api", "tests/browser", *PATIENT, *FACES]),
    "tests/browser": ["tests/browser"],
    "faces": FACES,
    "tests/api": ["tests/api"],
}
LONGEST = "the rest"
"""Those that compute are begun with this one of both databases; then come SQLite's, which are
longer than PostgreSQL's, for they have more of the tests that are shared out."""
WAITING = ("the patient", "tests/worker")
"""The shares that wait most of their time; each other computes."""
NICENESS = 5
"""Of the parts that compute."""
QUICK = {"quick, faces": FACES, "quick, the rest": _all_but(FACES)}
"""On SQLite alone: what is quick says the same on PostgreSQL, in twice the time."""
OPTIONS = ("-W", "error", "--durations=15")
# What follows one of these is no path to tests, even where a file has that name.
WITH_VALUE = ("-m", "-k", "-p", "-o", "-c", "-W", "-r", "--ignore", "--deselect", "--basetemp")
NOTHING_COLLECTED = 5
SEED = str(randrange(1000))
"""Of all parts, unless the environment names one: it chooses what of large matrices is run."""
# Seconds for fixtures to end their processes. After SIGTERM .ci/run would kill in 15.
GRACE = {signal.SIGINT: 60, signal.SIGTERM: 12}


@dataclass(frozen=True)
class Part:
    """What one pytest is to run."""

    database: str
    name: str = ""
    arguments: tuple[str, ...] = ()
    may_be_empty: bool = False
    is_shared_out: bool = False
    """Whether some tests are run on one of the two databases alone, see `tests/sharing_out.py`."""
    computes: bool = False
    """Whether it waits for its turn and yields to others."""
    pooler: str = ""
    """The mode of the PgBouncer that its workers connect through."""

    @property
    def title(self) -> str:
        return f"{self.database}: {self.name}" if self.name else self.database

    def command(self) -> list[str]:
        """Each part has a cache of its own, so that `--lf` reads what the same part wrote."""
        cache = "-".join(re.findall(r"\w+", self.title))
        options = (*OPTIONS, "-o", f"cache_dir=.pytest_cache/{cache}")
        return [sys.executable, "-m", "pytest", *options, *self.arguments]

    def is_passed(self, code: int) -> bool:
        return code == 0 or (code == NOTHING_COLLECTED and self.may_be_empty)


def parts(arguments: Sequence[str], environment: Mapping[str, str]) -> list[Part]:
    """Return what is to run: six parts a database, or one where the arguments choose tests.

    With TASKQUEUE_FULL=1 workers are also tested behind a pooler.
    """
    if "--quick" in arguments:
        rest = [argument for argument in arguments if argument != "--quick"]
        return [
            Part("sqlite", name, ("-m", "not slow", *chosen, *rest))
            for name, chosen in QUICK.items()
        ]
    found = [part for name in DATABASES for part in _of(name, tuple(arguments), environment)]
    return sorted(found, key=lambda part: (part.computes, part.name != LONGEST))


def _of(database: str, given: tuple[str, ...], environment: Mapping[str, str]) -> list[Part]:
    if _names_paths(given):
        return [Part(database=database, arguments=given, may_be_empty=True)]
    selects = any(re.match("-[mk]", argument) for argument in given)
    # Several parts on one server that is not ours would share one test database.
    is_shared = database == "postgresql" and environment.get("TASKQUEUE_TEST_DATABASE_URL")
    if selects or is_shared:
        return [Part(database=database, arguments=given)]
    shared_out = environment.get("TASKQUEUE_FULL") != "1"
    found = [
        Part(
            database,
            name,
            (*chosen, *given),
            is_shared_out=shared_out,
            computes=name not in WAITING,
        )
        for name, chosen in SHARES.items()
    ]
    return found if shared_out or database != "postgresql" else [*found, *_behind_poolers(given)]


def _behind_poolers(given: tuple[str, ...]) -> list[Part]:
    """Workers behind PgBouncer in each of its modes; `make test` has a few tests of them."""
    return [
        Part(
            "postgresql",
            f"tests/worker behind PgBouncer, {mode} mode",
            ("tests/worker", *given),
            pooler=mode,
        )
        for mode in MODES
    ]


def _names_paths(arguments: tuple[str, ...]) -> bool:
    return any(
        not argument.startswith("-")
        and before not in WITH_VALUE
        and Path(argument.partition("::")[0]).exists()
        for before, argument in zip(("", *arguments), arguments, strict=False)
    )


def _environment(part: Part) -> dict[str, str]:
    environment = {**os.environ, "TASKQUEUE_TEST_DATABASE": part.database}
    # Hundreds of workers start: each would compile the package anew, for half of its time.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.setdefault("TASKQUEUE_TEST_SEED", SEED)
    if part.is_shared_out:
        environment["TASKQUEUE_TEST_SHARED_OUT"] = "1"
    if part.pooler:
        environment["TASKQUEUE_TEST_POOLER"] = part.pooler
    return environment


class Runs:
    """Parts that run; SIGINT and SIGTERM are passed on to all of them, once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._kill_at = 0.0
        self._processes: list[tuple[Part, subprocess.Popen[bytes]]] = []
        for number in GRACE:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = self.signal or signal.Signals(number)

    def may_start(self, part: Part) -> bool:
        """Whether it is its turn. After a signal nothing more is begun.

        There is one more that computes than processors, for it too waits at times; and another
        one once all that wait have ended.
        """
        if self.signal:
            return False
        running = [other.computes for other, process in self._processes if process.poll() is None]
        most = (os.cpu_count() or 1) + (1 if all(running) else 0)
        return not part.computes or sum(running) <= most

    def start(self, part: Part, output: IO[bytes] | None) -> None:
        """Start it in a group of its own: Ctrl-C at a terminal must not reach it twice."""
        command = part.command()
        process = subprocess.Popen(
            ["nice", "-n", str(NICENESS), *command] if part.computes else command,
            env=_environment(part),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            process_group=0,
        )
        self._processes.append((part, process))

    def code_of(self, number: int) -> int | None:
        """The exit code of the part that was started as this one; None while it runs."""
        return self._processes[number][1].poll() if number < len(self._processes) else None

    def pass_on(self) -> None:
        """Tell all of a signal that has come; kill them when their time is over."""
        if self.signal and not self._kill_at:
            self._kill_at = time.monotonic() + GRACE[self.signal]
            self.send(self.signal)
        elif self._kill_at and time.monotonic() > self._kill_at:
            self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        for _, process in self._processes:
            process.send_signal(number)


def run(todo: Sequence[Part], runs: Runs, folder: Path) -> bool:
    """Show what each prints, in their order; return whether all have passed."""
    print(f"===== {todo[0].title} (others run beside it) =====", flush=True)
    runs.start(todo[0], None)
    started, shown = 1, 0
    codes: list[int] = []
    while shown < started:
        while started < len(todo) and runs.may_start(todo[started]):
            with (folder / str(started)).open("wb") as output:
                runs.start(todo[started], output)
            started += 1
        runs.pass_on()
        while (code := runs.code_of(shown)) is not None:
            codes.append(code)
            if shown:
                print(f"===== {todo[shown].title} =====", flush=True)
                sys.stdout.buffer.write((folder / str(shown)).read_bytes())
                sys.stdout.flush()
            shown += 1
        time.sleep(0.1)
    passed = [part.is_passed(code) for part, code in zip(todo, codes, strict=False)]
    return len(passed) == len(todo) and all(passed)


def main(arguments: Sequence[str]) -> int:
    runs = Runs()
    with tempfile.TemporaryDirectory() as folder:
        try:
            passed = run(parts(arguments, os.environ), runs, Path(folder))
        finally:
            runs.send(signal.SIGKILL)
    return 128 + runs.signal if runs.signal else int(not passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
