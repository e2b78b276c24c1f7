"""Bodies of workflows that the tests of real workers run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from taskqueue import Batch, current, fan_out, task, workflow
from taskqueue.workflows import Builder

# Directories, files of each, and lines of each file.
WIDTHS = (4, 5, 6)


@task(max_crashes=20, crash_delay=0)
def find(level: int, path: int, journal: str, pause: float = 0.0) -> Any:
    """Find the parts of a part, three levels deep; of the last level read them."""
    time.sleep(pause)
    with Path(journal).open("a") as file:
        file.write(f"{level} {path}\n")
    current().workflow.update(**{f"seen-{level}-{path}": True})
    if level == len(WIDTHS):
        return path * path
    parts = [path * 10 + number for number in range(WIDTHS[level])]
    return fan_out(find, [((level + 1, part, journal, pause), {}) for part in parts])


@task(batch=Batch(max_size=7, grace=0.5, max_delay=2))
def gather(events: list[Any]) -> int:
    """Count the events."""
    return len(events)


@task
def add_up(parts: list[Any]) -> int:
    """Reduce the parts of all levels."""
    return sum(add_up(part) if isinstance(part, list) else part for part in parts)


@task(atomic=True)
def split_atomically(count: int) -> Any:
    """Return calls, and change the context, in the transaction of the success."""
    current().workflow.update(count=count)
    return fan_out(square, [((number,), {}) for number in range(count)])


@task
async def split_async(count: int) -> Any:
    """Return calls from an event loop."""
    own = current().workflow
    own.update(place=own.place, step=own.step)
    return fan_out([square.s(number) | square.s() for number in range(count)])


@task
def square(number: int) -> int:
    """A leaf."""
    return number * number


@task(max_crashes=3, crash_delay=0)
def die_first(journal: str) -> Any:
    """Kill its process at its first attempt, after its update."""
    current().workflow.update(attempt=current().attempt)
    if current().attempt == 1:
        os._exit(9)
    return fan_out(square, [((3,), {})])


@task
def read_lines(path: str) -> list[str]:
    """Fail as long as there is no such file; wait as long as one beside it holds it back."""
    while Path(f"{path}.held").exists():
        time.sleep(0.05)
    return Path(path).read_text().splitlines()


@task
def count_words(line: str) -> int:
    """A leaf."""
    return len(line.split())


@workflow
def count_all_words(wf: Builder, path: str) -> None:
    """Map and reduce the lines of a file."""
    lines = wf.step(read_lines.s(path), name="read")
    parts = wf.step(count_words.map(lines), name="count")
    wf.step(add_up.s(parts), name="sum")
