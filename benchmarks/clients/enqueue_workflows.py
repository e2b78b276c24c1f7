"""Enqueue no-op tasks as members of workflows, or alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta

import django

django.setup()

from django.db.transaction import atomic  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402
from taskqueue import chain, chord, group  # noqa: E402

WIDTH = 8
"""Members of a chord."""
AT_ONCE = 50
"""Chords of one transaction: how they are enqueued is not what is measured."""
LATER = timedelta(days=1)


def alone(count: int) -> None:
    """So many tasks of no workflow."""
    noop.enqueue_many([((number,), {}) for number in range(count)])


def mapped(count: int) -> None:
    """One map of so many members, and a task that is given their results."""
    chord([noop.s(number) for number in range(count)], noop.s()).enqueue()


def released(count: int) -> None:
    """The same behind another step: workers insert the members."""
    members = group(noop.si(number) for number in range(count))
    chain(noop.si(), members, noop.s()).enqueue()


def chords(count: int) -> None:
    """So many chords of eight members, each with a task that is given their results."""
    for first in range(0, count, AT_ONCE):
        with atomic():
            for _ in range(min(AT_ONCE, count - first)):
                mapped(WIDTH)


def finished(count: int) -> None:
    """Chains of two steps, for a worker to run."""
    for _ in range(count):
        chain(noop.s(), noop.s()).enqueue()


def waiting(count: int) -> None:
    """Chains of which the first step waits until tomorrow, and two others for it."""
    for _ in range(count):
        chain(noop.using(run_after=LATER).s(), noop.s(), noop.s()).enqueue()


KINDS: dict[str, Callable[[int], None]] = {
    "alone": alone, "map": mapped, "released": released, "chords": chords,
    "finished": finished, "waiting": waiting,
}  # fmt: skip


if __name__ == "__main__":
    KINDS[sys.argv[1]](int(sys.argv[2]))
