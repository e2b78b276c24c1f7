"""Options that say where, when, how often and by which workers a task runs."""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from taskqueue.core.retries import Backoff
from taskqueue.declarations.names import QUEUE_NAME
from taskqueue.declarations.option import ALWAYS, EDITABLE, Use, option
from taskqueue.declarations.option import gettext_noop as _
from taskqueue.declarations.option_kinds import (
    MOST_WORKERS,
    Choice,
    ExceptionClasses,
    JsonObject,
    Name,
    Policy,
    Switch,
    Whole,
    WorkerNames,
)
from taskqueue.declarations.own_ids import OwnId
from taskqueue.declarations.priority_kind import PriorityKind
from taskqueue.declarations.time_kinds import Moment, Seconds, When
from taskqueue.exceptions import Duration

DAY = 86_400
MOST_MEGABYTES = 1 << 24
MOST_KEPT = 100_000
YEAR = 366 * DAY


def _lasting(
    carried: Literal["column", "snapshot"],
    label: str,
    help: str,
    *,
    least: float = 0.0,
    rest_highest: int,
) -> Any:
    """Declare a duration that can also be changed while the task runs."""
    return option(
        Seconds(least), ALWAYS, carried=carried, rest_highest=rest_highest, label=label, help=help
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class RunOptions:
    """Options for where, when, how often and by which workers a task runs."""

    queue_name: str = option(
        Name(QUEUE_NAME, 100), ALWAYS, "default", carried="column",
        label=_("Queue"), help=_("The queue in which the task waits."),
    )  # fmt: skip
    priority: int = option(
        PriorityKind(), ALWAYS, 0, carried="column",
        label=_("Priority"), help=_("-100 to 100; tasks with a higher priority run first."),
    )  # fmt: skip
    run_after: Moment | None = option(
        When(past_is_now=True), Use.USING | Use.REST, rest_highest=YEAR,
        label=_("When"), help="When the task may start; a time in the past means now.",
    )  # fmt: skip
    id: UUID | None = option(
        OwnId(), Use.USING | Use.REST,
        help="The id of the new task: a UUID of version 7 that was just made. Each is used once.",
    )  # fmt: skip
    max_attempts: int | None = option(
        Whole(), ALWAYS, carried="column", setting="MAX_ATTEMPTS", rest_highest=1000,
        label=_("Maximum attempts"), help=_("The task fails after this many failed attempts."),
    )  # fmt: skip
    timeout: timedelta | None = _lasting(
        "snapshot", _("Time limit"),
        _("For each attempt, from the start of its body."),
        least=0.001, rest_highest=7 * DAY,
    )  # fmt: skip
    timeout_from: str = option(
        Choice(("start", "progress")), ALWAYS, "start", carried="snapshot",
        label=_("Time limit counts from"),
        help=_("What the time limit counts from: the start of the body, or its last progress too."),
    )  # fmt: skip
    max_memory: int | None = option(
        Whole(1, MOST_MEGABYTES), ALWAYS, carried="snapshot",
        label=_("Memory limit"),
        help=_("Megabytes that the process of the body may use; beyond them the attempt fails. "
        "In the process pool."),
    )  # fmt: skip
    stop_grace: timedelta | None = _lasting(
        "snapshot", _("Grace of a stop"),
        _("How long a body that is asked to stop may go on before it is interrupted."),
        rest_highest=DAY,
    )  # fmt: skip
    kill_grace: timedelta | None = _lasting(
        "snapshot", _("Grace of a kill"),
        _("How long a body that was interrupted may go on before its process is killed."),
        rest_highest=DAY,
    )  # fmt: skip
    backoff: Backoff | Callable[..., Duration] | None = option(
        Policy(),
        ALWAYS,
        carried="snapshot",
        label=_("Delay between attempts"),
        help=_("How long to wait after a failed attempt."),
    )
    retry_for: tuple[type[BaseException], ...] | None = option(
        ExceptionClasses(), ALWAYS, carried="snapshot",
        label=_("Errors that are retried"),
        help=_("Exception classes that are retried, such as ConnectionError or shop.errors.Busy. "
        "The project's tasks must import them. Null: all."),
    )  # fmt: skip
    retry_on: str = option(
        Choice(("any", "same")), ALWAYS, "any", carried="snapshot",
        label=_("Worker of the next attempt"),
        help=_("Which worker takes the next attempt: any, or the same one while it takes tasks."),
    )  # fmt: skip
    give_up_on: tuple[type[BaseException], ...] = option(
        ExceptionClasses(), Use.TASK, (), carried="snapshot",
        label=_("Errors that are not retried"),
        help=_("Exception classes that are not retried."),
    )  # fmt: skip
    snooze_on: tuple[type[BaseException], ...] | None = option(
        ExceptionClasses(), ALWAYS, carried="snapshot",
        label=_("Errors that do not count"),
        help=_("Exception classes after which the task waits for its backoff and runs again, "
        "without a counted failure. The project's tasks must import them."),
    )  # fmt: skip
    max_crashes: int | None = option(
        Whole(), ALWAYS, carried="column", setting="MAX_CRASHES", rest_highest=100,
        label=_("Maximum lost attempts"),
        help=_("The task fails after this many lost attempts."),
    )  # fmt: skip
    crash_delay: timedelta | None = option(
        Seconds(), ALWAYS, carried="column", setting="CRASH_DELAY", rest_highest=DAY,
        label=_("Delay after a lost attempt"),
        help=_("How long to wait after a lost attempt."),
    )  # fmt: skip
    deadline: Moment | None = option(
        When(), EDITABLE, rest_highest=YEAR,
        label=_("Deadline"),
        help=_("The task fails at this time, even if it is running."),
    )  # fmt: skip
    expires_after: timedelta | None = option(
        Seconds(), EDITABLE, rest_highest=YEAR,
        label=_("Expires after"),
        help=_("The task is cancelled if it has not started by then."),
    )  # fmt: skip
    lease_duration: timedelta | None = _lasting(
        "column", _("Lease duration"),
        _("How long a worker may be silent before the task is taken over."),
        least=1.0, rest_highest=DAY,
    )  # fmt: skip
    ping_interval: timedelta | None = _lasting(
        "column", _("Ping interval"),
        _("How often the worker renews its lease."),
        least=0.05, rest_highest=DAY // 3,
    )  # fmt: skip
    retention: timedelta | None = _lasting(
        "column", _("Retention"),
        _("How long the task is kept after its end."),
        rest_highest=YEAR,
    )  # fmt: skip
    keep_last: int | None = option(
        Whole(0, MOST_KEPT), Use.TASK, carried="column",
        label=_("Finished tasks that are kept"),
        help=_("How many finished tasks of the definition are kept; of more, the first to have "
        "ended are deleted, before their retention is over."),
    )  # fmt: skip
    metadata: Mapping[str, Any] = option(
        JsonObject(), EDITABLE, {},
        label=_("Metadata"),
        help=_("A JSON object that travels with the task; at most 16 KiB."),
    )  # fmt: skip
    workers: int = option(
        Whole(1, MOST_WORKERS), default=1, carried="column", rest_highest=100,
        label=_("Distinct workers"),
        help=_("How many distinct workers must each run the task."),
    )  # fmt: skip
    worker_names: tuple[str, ...] | None = option(
        WorkerNames(),
        ALWAYS,
        carried="column",
        label=_("Worker names"),
        help=_("The only workers that may run the task."),
    )
    broadcast: bool = option(
        Switch(), default=False, carried="column",
        label=_("Every worker"),
        help=_("Every live worker of the queue runs the task."),
    )  # fmt: skip
