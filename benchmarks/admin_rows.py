"""The rows of a busy week, created by SQL, over which the admin's pages are measured.

A table is filled without its indexes, which are created afterwards: this takes half of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from benchmarks import admin_statements as statements

CHUNK = 500_000
WEEK = 7 * 86_400


@dataclass(frozen=True)
class Sizes:
    """How many tasks in all, and of these how many wait, and how many leases."""

    tasks: int

    @property
    def ready(self) -> int:
        """100,000 of 10,000,000."""
        return self.tasks // 100

    @property
    def scheduled(self) -> int:
        return self.tasks // 200

    @property
    def retrying(self) -> int:
        return self.tasks // 5_000

    @property
    def running(self) -> int:
        return 64

    @property
    def finished(self) -> int:
        return self.tasks - self.ready - self.scheduled - self.retrying - self.running

    @property
    def leases(self) -> int:
        """Of the newest; those of older tasks would only cost disk."""
        return min(self.finished, max(1_000_000, self.tasks // 5))


def fill(sizes: Sizes, say: Callable[[str], None]) -> None:
    """Fill an empty, migrated database, and leave it as autovacuum would."""
    began = time.monotonic()
    with _without_indexes("taskqueue_task"):
        _fill_finished(sizes, say)
        for status, seconds, count in (
            ("ready", -3600, sizes.ready),
            ("scheduled", 86_400, sizes.scheduled),
            ("retrying", 3600, sizes.retrying),
            ("running", -60, sizes.running),
        ):
            _run(statements.PENDING, status, seconds, status, count)
    say(f"tasks: {time.monotonic() - began:.0f} s")
    with _without_indexes("taskqueue_lease"):
        _run(statements.LEASES, sizes.leases)
        _run(statements.RUNNING)
    say(f"leases: {time.monotonic() - began:.0f} s")
    _run(statements.LOGS, min(sizes.finished, 100_000))
    for statement in (
        statements.ROLLUPS,
        statements.QUEUE_ROWS,
        statements.WORKER_ROWS,
        statements.AUDIT,
        statements.OPERATIONS,
    ):
        _run(statement)


def fill_occurrences() -> None:
    """Insert occurrences of the schedules that there are."""
    _run(statements.OCCURRENCES)


def settle() -> None:
    """Do what autovacuum would in its time."""
    _run("VACUUM (ANALYZE)")


def _fill_finished(sizes: Sizes, say: Callable[[str], None]) -> None:
    gap = WEEK / sizes.finished
    for first in range(1, sizes.finished + 1, CHUNK):
        last = min(sizes.finished, first + CHUNK - 1)
        _run(statements.FINISHED, WEEK, gap, WEEK, gap, first, last)
        say(f"{last:,} of {sizes.finished:,} finished tasks")


@contextmanager
def _without_indexes(table: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(statements.INDEXES, [table])
        indexes = cursor.fetchall()
    for name, _ in indexes:
        _run(f'DROP INDEX "{name}"')
    yield
    for _, definition in indexes:
        _run(definition)


def _run(statement: str, *parameters: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
