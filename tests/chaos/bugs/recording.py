"""Bugs in recording the end of an attempt."""

from __future__ import annotations

import time
from typing import Any

from tests.chaos.bugs.claiming import look_away
from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"


def _tell_before_pinging(planting: Planting) -> None:
    """A worker that wakes learns from its first ping what ended, and does not tell: let it tell."""

    def step(self: Any, began: float, held: Any) -> None:
        time.sleep(0.3)
        before(self, began, held)

    before = planting.replace("taskqueue.worker.heartbeat:Heartbeat.step", step)


def success_without_fence(planting: Planting) -> None:
    """A success is recorded whatever became of its lease."""
    _tell_before_pinging(planting)
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_SUCCESSES", "finished_at IS NULL", "true"
        )
    else:
        planting.rewrite(
            f"{ENGINE}.sqlite.record:HELD_BY_SUCCESSES", "lease.status = 'running' AND ", ""
        )


def failure_without_fence(planting: Planting) -> None:
    """Any other end is recorded whatever became of its lease."""
    _tell_before_pinging(planting)
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS", "finished_at IS NULL", "true"
        )
    else:
        planting.rewrite(f"{ENGINE}.sqlite.record:HELD", "lease.status = 'running' AND ", "")


def lines_without_fence(planting: Planting) -> None:
    """Log lines are kept after the attempt's end."""
    _tell_before_pinging(planting)
    if planting.vendor == "postgresql":
        planting.rewrite(f"{ENGINE}.postgresql.reports:INSERT_LOGS", "finished_at IS NULL", "true")
    else:
        planting.rewrite(
            f"{ENGINE}.sqlite.reports:INSERT_LOG", "id = %s AND status = 'running'", "id = %s"
        )


def progress_without_fence(planting: Planting) -> None:
    """Progress is written after the attempt's end."""
    _tell_before_pinging(planting)
    if planting.vendor == "postgresql":
        planting.rewrite(f"{ENGINE}.postgresql.reports:WRITE_NOTES", "finished_at IS NULL", "true")
    else:
        planting.rewrite(
            f"{ENGINE}.sqlite.reports:NOTE_LEASES",
            " AND taskqueue_lease.status = 'running'",
            "",
        )


def shared_end_without_fence(planting: Planting) -> None:
    """The end of one of several workers is recorded whatever became of its lease."""
    _tell_before_pinging(planting)
    look_away(planting)
    fence = {"postgresql": " AND finished_at IS NULL", "sqlite": " AND status = 'running'"}
    planting.rewrite(f"{ENGINE}.multi_worker_task:LOCK_LEASES", fence[planting.vendor], "")


def success_after_stop(planting: Planting) -> None:
    """A success counts though its stop was seen before."""
    name, condition = {
        "postgresql": ("RECORD_SUCCESSES", " AND stop_seen_at IS NULL"),
        "sqlite": ("HELD_BY_SUCCESSES", " AND lease.stop_seen_at IS NULL"),
    }[planting.vendor]
    planting.rewrite(f"{ENGINE}.{planting.vendor}.record:{name}", condition, "")

    # The worker itself does not offer such a success either: its memory goes first.
    def finish(self: Any, child: Any, outcome: Any, now: float) -> None:
        if job := child.held.get(outcome.lease_id):
            job.stop_reason = None
        before(self, child, outcome, now)

    before = planting.replace("taskqueue.worker.receiving:Receiver._finish", finish)


def stopped_runs_again(planting: Planting) -> None:
    """A task that was stopped is retried."""
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS",
            "WHEN stopping THEN 'cancelled'",
            "WHEN stopping OR effect.task_status = 'cancelled' THEN 'retrying'",
        )
    else:
        _change_verdicts(planting, {"cancelled": "retrying"})


def crashes_not_counted(planting: Planting) -> None:
    """A task may crash for ever."""
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS", "(verdict.counts_as = 'crash')::int", "0"
        )
    else:
        planting.rewrite(f"{ENGINE}.sqlite.record:FINISH", "crashes + %(crashes)s", "crashes")


def return_costs_an_attempt(planting: Planting) -> None:
    """What a worker returns as it ends counts as a failure."""
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS",
            "verdict.counts_as = 'failure'",
            "verdict.counts_as = 'failure' OR verdict.kind = 'returned'",
        )
        return

    def end(cursor: Any, held: Any, outcome: Any, *others: Any) -> Any:
        if outcome.kind == "returned":
            statement = "UPDATE taskqueue_task SET failures = failures + 1 WHERE id = %s"
            cursor.execute(statement, (held.task_id,))
        return before(cursor, held, outcome, *others)

    before = planting.replace(f"{ENGINE}.sqlite.record:_end", end)


def failures_without_limit(planting: Planting) -> None:
    """A task may fail for ever."""
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS",
            "NOT retryable OR failures + 1 >= max_attempts",
            "false",
        )
        return

    def verdict(held: Any, outcome: Any, *others: Any) -> Any:
        return before(held._replace(max_attempts=held.failures + 9), outcome, *others)

    before = planting.replace(f"{ENGINE}.sqlite.record:_verdict", verdict)


def strange_transition(planting: Planting) -> None:
    """A task that sleeps on it is said to wait for others."""
    if planting.vendor == "postgresql":
        planting.rewrite(
            f"{ENGINE}.postgresql.record:RECORD_ENDINGS",
            "WHEN stopping THEN 'cancelled'",
            "WHEN stopping THEN 'cancelled' WHEN locked.kind = 'snoozed' THEN 'blocked'",
        )
    else:
        _change_verdicts(planting, {"scheduled": "blocked"})


def _change_verdicts(planting: Planting, changed: dict[str, str]) -> None:
    def verdict(*arguments: Any) -> str:
        status: str = before(*arguments)
        return changed.get(status, status)

    before = planting.replace(f"{ENGINE}.sqlite.record:_verdict", verdict)


def end_left_unasked(planting: Planting) -> None:
    """What failed is promoted as if it were to be retried."""
    path = f"{ENGINE}.{planting.vendor}.duties:PROMOTE"
    if planting.vendor == "postgresql":
        planting.rewrite(path, "SET status = 'ready',", "SET status = 'ready', finished_at = NULL,")
        planting.rewrite(
            path,
            "WHERE status IN ('retrying', 'scheduled') AND run_after <= statement_timestamp()",
            "WHERE status IN ('retrying', 'scheduled', 'failed')"
            " AND run_after <= statement_timestamp()",
        )
    else:
        planting.rewrite(path, "SET status = 'ready',", "SET status = 'ready', finished_at = NULL,")
        for name in ("PROMOTE", "NEXT_DUE"):
            planting.rewrite(
                f"{ENGINE}.sqlite.duties:{name}",
                "WHERE status IN ('retrying', 'scheduled')",
                "WHERE status IN ('retrying', 'scheduled', 'failed')",
            )


def effect_apart(planting: Planting) -> None:
    """The effect of an atomic body commits before its success is recorded."""
    from django.db.transaction import atomic

    def run_atomic(self: Any, call: Any, definition: Any, args: Any, kwargs: Any) -> Any:
        with atomic(durable=True):
            text = self._encode(call(definition, self.context, args, kwargs))
        return self._succeeded(text)

    planting.replace("taskqueue.worker.bodies.execution:Attempt._run_atomic", run_atomic)
