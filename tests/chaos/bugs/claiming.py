"""Bugs in claims: which worker takes which task."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from taskqueue.engine.live_changes import LiveChanges
from taskqueue.models import Worker
from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"


def _candidates(planting: Planting) -> str:
    module = {"postgresql": "claim_apart", "sqlite": "claim"}[planting.vendor]
    return f"{ENGINE}.{planting.vendor}.{module}:CANDIDATES"


def claims_without_lock(planting: Planting) -> None:
    """Two workers take one task: no row is locked, nor looked at again."""
    if planting.vendor == "postgresql":
        path = f"{ENGINE}.postgresql.claim:CLAIM"
        planting.rewrite(path, "FOR UPDATE SKIP LOCKED", "")
        # The claims of all workers meet in their picks.
        planting.rewrite(
            path,
            "FROM picked\n    WHERE task.id",
            "FROM picked CROSS JOIN (SELECT pg_sleep(0.02)) AS pause\n    WHERE task.id",
        )
        return

    # Where one lock is around all of it, only a claim that looked before it can meet another's.
    planting.rewrite(
        f"{ENGINE}.sqlite.claim:PICK", "status = 'ready'", "status IN ('ready', 'running')"
    )
    planting.rewrite(f"{ENGINE}.sqlite.claim:CLAIM", " AND status = 'ready'", "")


def attempt_not_raised(planting: Planting) -> None:
    """A claim leaves the number of the attempt as it is."""
    old, new = {
        "postgresql": ("attempt = task.attempt + 1", "attempt = task.attempt"),
        "sqlite": ("attempt = attempt + 1", "attempt = attempt"),
    }[planting.vendor]
    planting.rewrite(f"{ENGINE}.{planting.vendor}.claim:CLAIM", old, new)
    if planting.vendor == "sqlite":
        planting.rewrite(f"{ENGINE}.sqlite.claim:PICK", "name, attempt,", "name, attempt - 1,")


def claimed_task_deleted(planting: Planting) -> None:
    """The first task of each claim is taken out of the table, and forgotten."""

    def claim(connection: Any, **named: Any) -> Any:
        claimed = before.__func__(connection, **named)
        for each in claimed[:1]:
            task_id = each.task_id
            if connection.vendor == "sqlite":
                task_id = task_id.replace("-", "")
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM taskqueue_lease WHERE id = %s", [each.lease_id])
                cursor.execute("DELETE FROM taskqueue_task WHERE id = %s", [task_id])
        return claimed[1:]

    before = planting.replace(planting.wording("claim"), staticmethod(claim))


def claims_when_told_to_end(planting: Planting) -> None:
    """A worker that was told to end goes on to take what there is."""
    planting.replace("taskqueue.worker.state:WorkerState.takes_tasks", property(lambda self: True))


def own_success_forgotten(planting: Planting) -> None:
    """A worker takes a task again that it has run already."""
    planting.rewrite(
        _candidates(planting),
        "own.is_shared AND own.status IN ('running', 'succeeded')",
        "own.is_shared AND own.status IN ('running')",
    )


def places_not_counted(planting: Planting) -> None:
    """One worker more than asked for finds a free place."""
    look_away(planting)

    def lease(connection: Any, candidate: Any, worker: str, *others: Any) -> Any:
        from taskqueue.models import Task

        claimed = before(connection, candidate, worker, *others)
        if candidate.is_shared:
            tasks = Task.objects.using(connection.alias).filter(id=candidate.task.task_id)
            tasks.update(open_slots=F("open_slots") + 1)
        return claimed

    before = planting.replace(f"{ENGINE}.apart:_lease", lease)


def look_away(planting: Planting) -> None:
    """Have SQLite, which cannot drop a CHECK, look away."""
    if planting.vendor != "sqlite":
        return

    def set_up(connection: Any) -> None:
        before(connection)
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = ON")

    before = planting.replace(f"{ENGINE}.connections:set_up_file", set_up)


def names_ignored(planting: Planting) -> None:
    """A worker takes what others are named for."""
    old = {
        "postgresql": "task.worker_names IS NULL OR",
        "sqlite": "task.worker_names IS NULL\n        OR",
    }[planting.vendor]
    planting.rewrite(_candidates(planting), old, "true OR")

    # A ping that comes between the claim and the end would give the task back.
    def apply_live_changes(*arguments: Any, **named: Any) -> LiveChanges:
        return LiveChanges(frozenset(), {})

    planting.replace("taskqueue.worker.heartbeat:apply_live_changes", apply_live_changes)


def broadcast_seats_one(planting: Planting) -> None:
    """A broadcast reaches nobody but the worker that saw it first."""
    planting.replace(
        f"{ENGINE}.broadcast:_alive", lambda connection, *, seating: [Worker(name=seating)]
    )
