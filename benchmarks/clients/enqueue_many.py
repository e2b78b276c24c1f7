"""Enqueue in bulk, and insert the same rows by COPY, alternately."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402
from django.db.transaction import atomic  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402

Run = Callable[[], object]


def enqueue(count: int) -> object:
    """As a project does it."""
    return noop.enqueue_many([((number,), {}) for number in range(count)])


def framework(count: int) -> object:
    """As a project does it through Django's Tasks framework."""
    from benchmarks.framework import noop

    return noop.get_backend().enqueue_many(noop, [((number,), {}) for number in range(count)])


def group(count: int) -> object:
    """As one workflow: a group of them."""
    # Not by an older commit, which need not have workflows.
    from taskqueue import group

    return group(noop.s(number) for number in range(count)).enqueue()


def raw_copy() -> Callable[[int], Run]:
    """The engine's own COPY of rows that are ready: nothing is encoded while it is timed.

    Its transaction begins as that of an enqueue does. Else a trigger would look for each row
    whether anybody wants an event of it.
    """
    # Not by an older commit, which need not have what is imported here.
    from benchmarks.raw import rows_of_copy
    from taskqueue.engine.postgresql.copying import COPY
    from taskqueue.engine.sessions import BEGIN_BULK

    connection.ensure_connection()
    cursor: Any = connection.connection.cursor()

    def copy(rows: bytes) -> None:
        with atomic():
            cursor.execute(BEGIN_BULK, (True,))
            with cursor.copy(COPY) as stream:
                stream.write(rows)

    return lambda count: partial(copy, rows_of_copy(noop, count))


def main(count: int, turns: int, names: Sequence[str]) -> None:
    """Measure the sides that are named by turns, one transaction each, after one that is not told.

    Each turn begins with another side. A side makes what it needs before its time begins.
    """
    known: dict[str, Callable[[], Callable[[int], Run]]] = {
        "copy": raw_copy,
        "enqueue": lambda: partial(partial, enqueue),
        "framework": lambda: partial(partial, framework),
        "group": lambda: partial(partial, group),
    }
    sides = {name: known[name]() for name in names}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(turns + 1):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            run = sides[name](count)
            gc.collect()  # What the side before has left.
            began, used = time.perf_counter(), time.process_time()
            run()
            seconds = time.perf_counter() - began
            processor = (time.process_time() - used) / count
            if turn:
                measured[name].append({"rate": count / seconds, "processor": processor})
    print(json.dumps(measured))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
