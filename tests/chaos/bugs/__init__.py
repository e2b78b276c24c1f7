"""Bugs, seeded in real worker processes, each of which the checker must find.

    python -m tests.chaos.bugs --database postgresql [--only NAME]

The kill matrix: every bug in a small run of its own, which is clean without it. A bug is planted
by a hook of the test project alone: `tests.sample.apps` calls `plant` where the environment says
`TASKQUEUE_TEST_BUG`.
"""

from __future__ import annotations

import os

PLANTED = "TASKQUEUE_TEST_BUG"
"""The environment variable that names the bug of a worker's processes; empty: the bodies alone."""


def plant_if_told() -> None:
    """Plant the bug that the environment names, with the bodies that show it."""
    if PLANTED not in os.environ:
        return
    from tests.chaos.bugs import bodies  # noqa: F401  (registers them)
    from tests.chaos.bugs.catalogue import BUGS
    from tests.chaos.bugs.planting import Planting

    if name := os.environ[PLANTED]:
        BUGS[name].plant(Planting())


def run_kill_matrix(database: str, only: list[str] | None = None, *, jobs: int = 2) -> bool:
    """Print for each bug whether it was caught, and by which invariants; whether all were."""
    from tests.chaos.bugs.matrix import run_matrix

    return run_matrix(database, only or [], jobs=jobs)
