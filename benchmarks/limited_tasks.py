"""Tasks under limits."""

from __future__ import annotations

import time

from taskqueue import Concurrency, Fair, Rate, task

SHORT = 0.005
"""Seconds of a body that waits for something."""


@task(concurrency=Concurrency(2, key="key"))
def short_limited(key: int = 0) -> None:
    """Wait, as for a service; two of a key at once."""
    time.sleep(SHORT)


@task(concurrency=Concurrency(1, name="held"))
def held(key: int = 0) -> None:
    """Do nothing, once somebody lets it."""


@task(concurrency=Concurrency(10_000, key="key"))
def wide(key: int = 0) -> None:
    """Do nothing, under a limit that no benchmark reaches."""


@task(rate=Rate("100/s"))
def rated(key: int = 0) -> None:
    """Do nothing, a hundred times a second."""


@task(fair=Fair("key"))
def fair(key: int = 0) -> None:
    """Do nothing, in turns with those of other keys."""
