"""Memory of a worker's idle processes, compared with a process that only imports the project.

USS is the memory that would be free again if the process ended; RSS also counts shared pages, PSS
its share of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchmarks.cpu import is_child
from benchmarks.databases import PostgreSQL
from benchmarks.figures import Below, Figure
from benchmarks.harness import Bench
from benchmarks.processes import LONGEST, Failed, Process, worker

CHILDREN = 2
MEGABYTE = 1e6
BARE = """
import signal, sys
import django
django.setup()
{imports}
open(sys.argv[1], "w").close()
signal.pause()
"""
BARE_PROJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "bare process with the tasks' imports": ("import benchmarks.tasks", {}),
    "bare process without taskqueue": ("", {"TASKQUEUE_BENCHMARK_BARE": "1"}),
}


def measure(bench: Bench) -> Iterator[Figure]:
    """A worker that has run some tasks and is idle; all processes live at once."""
    database = bench.postgresql
    with ExitStack() as stack:
        bare = {
            name: stack.enter_context(_bare(database, imports, env))
            for name, (imports, env) in BARE_PROJECTS.items()
        }
        options = ("--pool", "process", "--concurrency", str(CHILDREN))
        process = stack.enter_context(worker(*options, settings=database.settings))
        database.fill("ready", 1_000)
        _wait(lambda: database.succeeded() == 1_000)
        parent = psutil.Process(process.pid)
        others = [each for each in parent.children() if not is_child(each)]
        children = [each for each in parent.children() if is_child(each)]
        if len(children) != CHILDREN:
            raise Failed(f"The worker has {len(children)} children instead of {CHILDREN}.")
        bases = {name: psutil.Process(each.pid) for name, each in bare.items()}
        for kind in ("uss", "pss", "rss"):
            of_bases = {name: _megabytes(each, kind) for name, each in bases.items()}
            of_children = [_megabytes(child, kind) for child in children]
            own = sum(_megabytes(each, kind) for each in (parent, *others))
            yield Figure(
                what=f"idle parent, guardian and template, {kind.upper()}", unit="MB", values=[own]
            )
            yield Figure(what=f"idle child, {kind.upper()}", unit="MB", values=of_children)
            for name, base in of_bases.items():
                yield Figure(what=f"{name}, {kind.upper()}", unit="MB", values=[base])
                yield Figure(
                    what=f"idle child beyond a {name}, {kind.upper()}",
                    unit="MB",
                    values=[each - base for each in of_children],
                    target=Below(60),
                )


def _bare(database: PostgreSQL, imports: str, env: dict[str, str]) -> Process:
    with tempfile.TemporaryDirectory(prefix="taskqueue-benchmark-") as folder:
        done = Path(folder) / "done"
        code = BARE.format(imports=imports)
        process = Process("-c", code, str(done), settings=database.settings, env=env)
        _wait(done.exists)
    return process


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not is_so():
        if time.monotonic() > deadline:
            raise Failed(f"Waited for {LONGEST} s in vain.")
        time.sleep(0.05)


def _megabytes(process: psutil.Process, kind: str) -> float:
    return float(getattr(process.memory_full_info(), kind)) / MEGABYTE
