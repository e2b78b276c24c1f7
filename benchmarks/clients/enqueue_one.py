"""Enqueue one by one, and insert the same rows through Django's cursor, by turns."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence

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


def raw_insert() -> Callable[[int], None]:
    """The least that Django's cursor can do: the row that an enqueue has just left."""
    # Not by an older commit, which need not have what is imported here.
    from benchmarks import raw
    from taskqueue.core.uuid7 import uuid7_hex

    task_id = str(noop.enqueue(1).id)
    statement = raw.Row(connection.connection.cursor(), task_id).insert()

    def insert(count: int) -> None:
        for number in range(count):
            with connection.cursor() as cursor:
                cursor.execute(statement, (uuid7_hex(), f"[{number}]"))

    return insert


def main(count: int, names: Sequence[str]) -> None:
    """Measure the sides that are named, by turns, after one that does not count."""
    known: dict[str, Callable[[], Side]] = {
        "raw": raw_insert, "enqueue": lambda: enqueue, "framework": lambda: framework,
    }  # fmt: skip
    sides = {name: known[name]() for name in names}
    seconds = dict.fromkeys(sides, 0.0)
    for side in sides.values():
        side(TURN)
    for _ in range(0, count, TURN):
        for name, side in sides.items():
            began = time.perf_counter()
            side(TURN)
            seconds[name] += time.perf_counter() - began
    print(json.dumps({name: count / seconds[name] for name in sides}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
