"""Tasks under limits."""

from __future__ import annotations

import time

from taskqueue import Concurrency, task

SHORT = 0.005
"""Seconds of a body that waits for something."""


@task(concurrency=Concurrency(2, key="key"))
def short_limited(key: int = 0) -> None:
    """Wait, as for a service; two of a key at once."""
    time.sleep(SHORT)
