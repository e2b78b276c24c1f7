"""Enqueue one by one, and insert the same rows through Django's cursor, alternately."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402

Side = Callable[[int], None]
TURN = 50
"""Inserts of one side before the other has its turn."""


def enqueue(count: int) -> None:
    """As a project does it."""
    for number in range(count):
        noop.enqueue(number)


def framework(count: int) -> None:
    """As a project does it through Django's Tasks framework."""
    from benchmarks.framework import noop as task

    for number in range(count):
        task.enqueue(number)


def raw_insert() -> Side:
    """The least that Django's cursor can do: the row that an enqueue has just left."""
    return _running(_raw_row().insert())


def raw_procedure() -> Side:
    """The same INSERT by a procedure, for which the server keeps its plan, as an enqueue is run."""
    with connection.cursor() as cursor:
        cursor.execute(_raw_row().procedure())
    return _running("CALL pg_temp.raw_insert(%s, %s)")


def _raw_row() -> Any:
    # Not by an older commit, which need not have what is imported there.
    from benchmarks import raw

    task_id = str(noop.enqueue(1).id)
    return raw.Row(connection.connection.cursor(), task_id)


def _running(statement: str) -> Side:
    """As an enqueue sends its own: by a new cursor of Django's, whose text holds the parameters."""
    from taskqueue.core.uuid7 import uuid7_hex

    def run(count: int) -> None:
        for number in range(count):
            with connection.cursor() as cursor:
                cursor.execute(statement, (uuid7_hex(), f"[{number}]"))

    return run


def main(count: int, names: Sequence[str]) -> None:
    """Measure the sides that are named, by turns, after one that does not count."""
    known: dict[str, Callable[[], Side]] = {
        "raw": raw_insert, "procedure": raw_procedure, "enqueue": lambda: enqueue,
        "framework": lambda: framework,
    }  # fmt: skip
    sides = {name: known[name]() for name in names}
    seconds, processor = dict.fromkeys(sides, 0.0), dict.fromkeys(sides, 0.0)
    for side in sides.values():
        side(TURN)
    for _ in range(0, count, TURN):
        for name, side in sides.items():
            began, used = time.perf_counter(), time.process_time()
            side(TURN)
            seconds[name] += time.perf_counter() - began
            processor[name] += time.process_time() - used
    measured = {
        name: [{"rate": count / seconds[name], "processor": processor[name] / count}]
        for name in sides
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
