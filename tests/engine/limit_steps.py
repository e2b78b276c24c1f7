"""Claims under limits, as a worker makes them, for tests that play one by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.apart import look_apart
from taskqueue.engine.limits.claimant import Claimant, Limited
from taskqueue.engine.limits.claiming import claim_limited
from taskqueue.engine.limits.sweeping import Sweep
from taskqueue.engine.rows import Claimed
from tests.engine.steps import LEASE


def take(want: int = 100, **options: Any) -> list[Claimed]:
    """Claim as a worker of all queues does."""
    return take_and_tell(want, **options).claimed


def take_and_tell(
    want: int = 100,
    *,
    worker: str = "w1",
    host: str = "h1",
    tags: Any = (),
    unknown: Sequence[str] = (),
    connection: BaseDatabaseWrapper | None = None,
    **options: Any,
) -> Limited:
    """Claim as a worker of all queues does; also whether something is left."""
    connection = connection or connections["default"]
    lanes = open_lanes(connection)
    if not lanes:
        return Limited(claimed=[])
    claimant = Claimant(
        name=worker,
        host=host,
        tags=frozenset(tags),
        serving=lambda names: names,
        quotas=lambda names, size: [(name, size) for name in names],
    )
    return claim_limited(
        connection,
        claimant,
        lanes=lanes,
        want=want,
        free=want,
        unknown=unknown,
        lease_duration=LEASE,
        **options,
    )


def open_lanes(connection: BaseDatabaseWrapper | None = None) -> set[tuple[str, str]]:
    """Return what a look sees."""
    return look_apart(connection or connections["default"], worker="w1")[1]


def args(claimed: list[Claimed]) -> list[str]:
    return [row.args for row in claimed]


def repairs() -> int:
    """How many partitions a sweep of all finds standing still."""
    sweep = Sweep()
    while sweep.step(connections["default"]):
        pass
    return sweep.repairs
