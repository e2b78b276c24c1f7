"""A job: a claimed task on its way through the worker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from taskqueue.declarations import snapshots
from taskqueue.engine.rows import Claimed
from taskqueue.worker.memory import LOOK_INTERVAL

# After this share of a lease without renewal, a child dies and no body starts.
FENCE = 0.6


@lru_cache(maxsize=256)
def _told_by(options: str) -> Mapping[str, Any]:
    """Return a job's attributes that depend on its options; jobs of one definition share them."""
    snapshot = snapshots.loaded(options)
    # Invalid stored options must not end a worker; the child parks the task.
    if not isinstance(snapshot, dict) or snapshots.misfit(snapshot):
        return {}
    return {
        "snapshot": snapshot,
        "timeout": snapshot.get("timeout"),
        "max_memory": snapshot.get("max_memory"),
        "renews_limit": snapshot.get("timeout_from") == "progress",
        "stays": snapshot.get("retry_on") == "same",
        "is_scheduled": "schedule" in snapshot,
        "is_step": snapshots.STEP in snapshot,
    }


class Job:
    """A lease that this worker holds. Times are by the monotonic clock."""

    # Class defaults with the usual values, because a job is created for every attempt.
    deadline_at: float | None = None
    started_at: float | None = None
    limit_at: float | None = None
    asked_at: float | None = None
    interrupted_at: float | None = None
    stop_reason: str | None = None
    is_over = False
    noted = False
    # How its child has logged its failure: `failed`, `retrying`, or empty for not at all.
    logged_as = ""
    # The options that were stored with the task.
    snapshot: Mapping[str, Any] = MappingProxyType({})
    timeout: float | None = None
    # The megabytes that its process may use, when to check that next, and since when it uses more.
    max_memory: int | None = None
    check_memory_at: float | None = None
    over_memory_at: float | None = None
    # Whether progress restarts its time limit.
    renews_limit = False
    # Whether its next attempt must be on this worker.
    stays = False
    # Whether it is a run of a schedule, which must be notified of its end.
    is_scheduled = False
    # Whether it belongs to a step of a workflow.
    is_step = False
    # When its task became ready.
    ready_at: float | None = None

    def __init__(
        self, claimed: Claimed, claimed_at: float, *, usual_lease: float = float("inf")
    ) -> None:
        self.lease_id, self.task_id, self.name = claimed[:3]
        self.queue_name = claimed.queue_name
        self.failures, self.max_attempts, self.crashes, self.lease_seconds = claimed[8:12]
        self.claimed_at = claimed_at
        self.usual_lease = usual_lease
        self.renewed(claimed_at)
        if claimed.deadline_in is not None:
            self.deadline_at = claimed_at + claimed.deadline_in
        self.ping_seconds = claimed.ping_seconds
        if claimed.options:
            self.__dict__.update(_told_by(claimed.options))
        if claimed.waited is not None:
            self.ready_at = claimed_at - claimed.waited
        # The first fields of Claimed are those of an Order, in the same order.
        times = self.deadline_at, self.queue_name, self.ready_at
        self.order = (*claimed[:10], *times, self.crashes)

    def renewed(self, began: float) -> None:
        """Record that the database has answered a claim or renewal that began at `began`.

        Until `safe_until` no other worker can have it. The answer may come late, or this worker may
        have been frozen: after that time the body must not start.
        """
        self.safe_until = began + FENCE * (self.lease_seconds or self.usual_lease)

    @property
    def needs_own_child(self) -> bool:
        """Whether it crashed before: nothing may wait behind it, because it might crash again."""
        return self.crashes > 0

    @property
    def needs_whole_slot(self) -> bool:
        """Whether no other body may run beside it, whatever its definition says.

        The memory of a process says nothing about one of several bodies.
        """
        return self.crashes > 0 or self.max_memory is not None

    def start(self, now: float) -> None:
        """Record the start of its body, as far as the parent can tell."""
        self.started_at = now
        if self.max_memory is not None:
            # Not checked at once: its child checks before it begins.
            self.check_memory_at = now + LOOK_INTERVAL
        self._limit(now)

    def progressed(self, now: float) -> None:
        """Record that its body has reported progress."""
        if self.renews_limit and self.started_at is not None:
            self._limit(now)

    def _limit(self, now: float) -> None:
        if self.timeout is not None:
            self.limit_at = now + self.timeout
        if self.deadline_at is not None:
            self.limit_at = min(self.limit_at or self.deadline_at, self.deadline_at)

    def unstart(self) -> None:
        """Record that its body had not started after all: the child gave the order back."""
        self.started_at = self.limit_at = None
        self.check_memory_at = self.over_memory_at = None
