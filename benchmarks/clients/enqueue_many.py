"""Enqueue in bulk, and insert the same rows by COPY, one after the other."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402
from django.db.transaction import atomic  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402

Side = Callable[[int], object]


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


def raw_copy() -> Side:
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
    ready: list[bytes] = []

    def copy(count: int) -> None:
        if not ready:  # The first call does not count: it makes the rows of the next one too.
            ready.extend(rows_of_copy(noop, count) for _ in range(2))
        rows = ready.pop()
        with atomic():
            cursor.execute(BEGIN_BULK)
            with cursor.copy(COPY) as stream:
                stream.write(rows)

    return copy


def main(count: int, names: Sequence[str]) -> None:
    """Measure the sides that are named, one transaction each, after one that does not count."""
    known: dict[str, Callable[[], Side]] = {
        "copy": raw_copy, "enqueue": lambda: enqueue, "framework": lambda: framework,
        "group": lambda: group,
    }  # fmt: skip
    measured = {}
    for name in names:
        side = known[name]()
        side(count)
        began, used = time.perf_counter(), time.process_time()
        side(count)
        measured[name] = {
            "rate": count / (time.perf_counter() - began),
            "processor": (time.process_time() - used) / count,
        }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
