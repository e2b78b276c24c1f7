"""`show`: one task, with its attempts and what was done to it by hand."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from taskqueue.declarations.redaction import redacted
from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.models import Audit, Lease, Task
from taskqueue.models.task import Route
from taskqueue.results import identifier_of
from taskqueue.results.reading import cancellation_of, row_of

MOST_ATTEMPTS = 100
"""The latest ones."""
HIDDEN = "hidden: no definition of this name is known here"
TASK = (
    "name", "status", "queue_name", "priority", "run_after", "enqueued_at", "ready_at",
    "started_at", "finished_at", "attempt", "failures", "max_attempts", "crashes", "max_crashes",
    "deadline_at", "expires_at", "lease_duration", "ping_interval", "unique_key", "unique_scope",
    "retry_of_id", "return_value", "error_class", "error_message", "metadata", "options",
)  # fmt: skip
SEVERAL = ("workers", "worker_names", "broadcast", "open_slots", "running_leases", "successes")
LEASE = (
    "attempt", "worker_id", "status", "claimed_at", "started_at", "expires_at", "finished_at",
    "stop_requested_at", "stop_requested_by", "stop_reason", "stop_seen_at", "progress",
    "progress_message", "wedged_at", "error_class", "error_message", "traceback",
)  # fmt: skip
AUDIT = ("at", "verb", "actor", "reason", "before", "detail")


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _show(flags: Namespace, output: Output) -> None:
    task = row_of(identifier_of(flags.id))
    alias = project_connection().alias
    leases = Lease.objects.using(alias).filter(task_id=task.id).order_by("-attempt")
    acts = Audit.objects.using(alias).filter(subject=str(task.id)).order_by("id")
    again = Task.objects.using(alias).filter(retry_of=task.id).order_by("id")
    output.sheet(
        {
            "id": str(task.id),
            **_fields(task, TASK),
            **(_fields(task, SEVERAL) if task.route == Route.APART else {}),
            **_cancellation(task, leases),
            **_schedule(task),
            **_arguments(task),
            "retried_as": [str(each) for each in again.values_list("id", flat=True)],
            "attempts": [_fields(each, LEASE) for each in reversed(leases[:MOST_ATTEMPTS])],
            "acts": [_fields(each, AUDIT) for each in acts[:MOST_ATTEMPTS]],
        }
    )


def _cancellation(task: Task, leases: Iterable[Lease]) -> dict[str, Any]:
    """The person who cancelled it or asked it to stop, and the reason."""
    found = cancellation_of(task, leases)
    return {} if found is None else {"cancelled_by": found.by, "cancel_reason": found.reason}


def _schedule(task: Task) -> dict[str, Any]:
    """Which schedule it is a run of; the name at that time, for the schedule may be gone."""
    if task.schedule_id is None:
        return {}
    return {"schedule": task.options.get("schedule", ""), "nominal_at": task.nominal_at}


def _arguments(task: Task) -> dict[str, Any]:
    shown = redacted(task.name, task.args, task.kwargs)
    if shown is None:
        return {"args": HIDDEN, "kwargs": HIDDEN}
    return {"args": shown.args, "kwargs": shown.kwargs}


def _fields(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name.removesuffix("_id"): getattr(row, name) for name in names}


SHOW = Subcommand(
    name="show",
    help="one task, with its attempts and what was done to it by hand",
    add_arguments=_add_show,
    run=_show,
    example="show 01a2022f-c607-74e3-a122-9f8b03c681f8 --format json",
)
