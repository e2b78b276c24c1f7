"""The options of a task: each is declared once, here, with all that the faces need to know of it.

From a declaration come the check and normal form, the forms in JSON and text, the field of REST
requests, the field of the admin's forms, the column or snapshot key in which a task carries it,
and whether it can be changed after the enqueue.
"""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from taskqueue.core.retries import Backoff
from taskqueue.core.suggestions import nearest_option
from taskqueue.declarations.admission import (
    Admission,
    AdmissionKind,
    Capacity,
    Debounce,
    Throttle,
)
from taskqueue.declarations.arguments import UniqueKey, check_scope
from taskqueue.declarations.batch import Batch, check_batch
from taskqueue.declarations.limits import (
    Concurrency,
    Cost,
    CostKind,
    Fair,
    InstanceKind,
    Limits,
    LimitsKind,
    Rate,
    Sequence,
    TagsKind,
)
from taskqueue.declarations.names import DEFINITION_NAME, QUEUE_NAME
from taskqueue.declarations.notify import Notify, check_notify
from taskqueue.declarations.option import ALWAYS, ENQUEUE, NOT_SCHEDULED, Option, Use, option
from taskqueue.declarations.option_kinds import (
    MOST_WORKERS,
    Checked,
    Choice,
    ExceptionClasses,
    HoldTime,
    JsonObject,
    Moment,
    Name,
    Policy,
    Seconds,
    Switch,
    UniqueKeyKind,
    When,
    Whole,
    WorkerNames,
)
from taskqueue.declarations.own_ids import OwnId
from taskqueue.declarations.per import Per
from taskqueue.declarations.scheduled import Scheduled, scheduled_of
from taskqueue.exceptions import Duration, InvalidTask

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
MOST_PER_SLOT = 1000
DAY = 86_400
YEAR = 366 * DAY


def check_sensitive(name: str, value: Any) -> frozenset[str]:
    """Return the names of arguments that are redacted. Raises `InvalidTask`."""
    names = (value,) if isinstance(value, str) or not hasattr(value, "__iter__") else tuple(value)
    if not all(isinstance(item, str) for item in names):
        raise InvalidTask(f"{name} must hold names of arguments, not {value!r}.")
    return frozenset(names)


def _(text: str) -> str:
    """Mark a text for the translators; the admin translates it."""
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Every option that a task can carry; None stands for the project's setting, or for none."""

    queue_name: str = option(
        Name(QUEUE_NAME, 100), ALWAYS, "default", carried="column",
        label=_("Queue"), help=_("The queue in which the task waits."),
    )  # fmt: skip
    priority: int = option(
        Whole(LOWEST_PRIORITY, HIGHEST_PRIORITY), ALWAYS, 0, carried="column",
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
    unique_key: UniqueKey | None = option(
        UniqueKeyKind(), label=_("Unique key"),
        help=_("No second task is enqueued while a task holds this key."),
    )  # fmt: skip
    max_attempts: int | None = option(
        Whole(), ALWAYS, carried="column", setting="MAX_ATTEMPTS", rest_highest=1000,
        label=_("Maximum attempts"), help=_("The task fails after this many failed attempts."),
    )  # fmt: skip
    timeout: timedelta | None = option(
        Seconds(0.001), ALWAYS, carried="snapshot", rest_highest=7 * DAY,
        label=_("Time limit"), help=_("For each attempt, from the start of its body."),
    )  # fmt: skip
    timeout_from: str = option(
        Choice(("start", "progress")), ENQUEUE, "start", carried="snapshot",
        label=_("Time limit counts from"),
        help=_("What the time limit counts from: the start of the body, or its last progress too."),
    )  # fmt: skip
    stop_grace: timedelta | None = option(
        Seconds(), ENQUEUE, carried="snapshot", rest_highest=DAY,
        label=_("Grace of a stop"),
        help=_("How long a body that is asked to stop may go on before it is interrupted."),
    )  # fmt: skip
    kill_grace: timedelta | None = option(
        Seconds(), ENQUEUE, carried="snapshot", rest_highest=DAY,
        label=_("Grace of a kill"),
        help=_("How long a body that was interrupted may go on before its process is killed."),
    )  # fmt: skip
    backoff: Backoff | Callable[..., Duration] | None = option(
        Policy(),
        ALWAYS,
        carried="snapshot",
        label=_("Delay between attempts"),
        help=_("How long to wait after a failed attempt."),
    )
    retry_for: tuple[type[BaseException], ...] | None = option(
        ExceptionClasses(), carried="snapshot",
        label=_("Errors that are retried"),
        help=_("Exception classes that are retried, such as ConnectionError or shop.errors.Busy. "
        "The project's tasks must import them. Null: all."),
    )  # fmt: skip
    retry_on: str = option(
        Choice(("any", "same")), ENQUEUE, "any", carried="snapshot",
        help="Which worker takes the next attempt: any, or the same one while it takes tasks.",
    )  # fmt: skip
    give_up_on: tuple[type[BaseException], ...] = option(
        ExceptionClasses(), Use.TASK, (), carried="snapshot",
        help="Exception classes that are not retried.",
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
        When(),
        rest_highest=YEAR,
        label=_("Deadline"),
        help=_("The task fails at this time, even if it is running."),
    )
    expires_after: timedelta | None = option(
        Seconds(), rest_highest=YEAR,
        label=_("Expires after"),
        help=_("The task is cancelled if it has not started by then."),
    )  # fmt: skip
    unique_scope: str | None = option(
        Checked(check_scope), Use.TASK | Use.USING | Use.SCHEDULE,
        label=_("Scope of the unique key"),
        help=_("Within which the key is unique; by default, the definition."),
    )  # fmt: skip
    unique_for: str | timedelta = option(
        HoldTime(), default="finished", rest_highest=YEAR,
        label=_("Unique key is held"),
        help=_('How long the key is held. A request may say "kept" only where the definition '
        "declares it, because such tasks are not pruned."),
    )  # fmt: skip
    unique_per: str | timedelta | None = option(
        Per(), rest_highest=YEAR,
        label=_("Unique key for each"),
        help=_("Hold the key until the end of the period in which the task is due: a minute, hour, "
        "day or week by the clock of TIME_ZONE, or a duration, counted from 1970."),
    )  # fmt: skip
    on_duplicate: str = option(
        Choice(("return", "raise", "replace")), NOT_SCHEDULED, "return",
        label=_("If another task holds the key"),
        help=_("What to do if another task holds the key."),
    )  # fmt: skip
    restart: str | None = option(
        Choice((None, "failed", "all")), NOT_SCHEDULED, carried="column",
        label=_("Finished holders to run again"),
        help=_('Which finished holders of the key run again; only with unique_for "kept".'),
    )  # fmt: skip
    debounce: Debounce | None = option(
        AdmissionKind(Debounce, 'Debounce(5, key="doc_id", max_wait=60)'), Use.TASK | Use.USING,
        help="Run the last call of a burst, once no call has come for a time.",
    )  # fmt: skip
    throttle: Throttle | None = option(
        AdmissionKind(Throttle, 'Throttle("1/h", key="user_id")'), Use.TASK | Use.USING,
        help="Enqueue so many tasks in each window of a time, and drop further calls.",
    )  # fmt: skip
    capacity: Capacity | None = option(
        AdmissionKind(Capacity, 'Capacity(10, key="account_id")'), Use.TASK | Use.USING,
        help="Have at most so many unfinished tasks.",
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
    concurrency: tuple[Concurrency, ...] = option(
        LimitsKind(Concurrency, 'Concurrency(2, key="account_id")'), Use.TASK | Use.USING, (),
        help="How many of its tasks run at once, of each key, host or worker.",
    )  # fmt: skip
    rate: tuple[Rate, ...] = option(
        LimitsKind(Rate, 'Rate("100/m", key="account_id")'), Use.TASK | Use.USING, (),
        help="How many of its tasks start in every window of a time.",
    )  # fmt: skip
    cost: Cost = option(
        CostKind(), Use.TASK | Use.USING, 1,
        help="How many tokens of a rate, or how much of a fair share, a task takes.",
    )  # fmt: skip
    fair: Fair | None = option(
        InstanceKind(Fair, 'Fair("tenant_id")'), Use.TASK | Use.USING,
        help="Share the queue fairly between the values of a key.",
    )  # fmt: skip
    sequence: Sequence | None = option(
        InstanceKind(Sequence, 'Sequence("order_id")'), Use.TASK | Use.USING,
        help="Run the tasks of a key one after another.",
    )  # fmt: skip
    requires: tuple[str, ...] = option(
        TagsKind(), Use.TASK | Use.USING, (),
        help="The tags that a worker must have, by runworker --tags.",
    )  # fmt: skip
    lease_duration: timedelta | None = option(
        Seconds(1.0), ALWAYS, carried="column", rest_highest=DAY,
        label=_("Lease duration"),
        help=_("How long a worker may be silent before the task is taken over."),
    )  # fmt: skip
    ping_interval: timedelta | None = option(
        Seconds(0.05), ALWAYS, carried="column", rest_highest=DAY // 3,
        label=_("Ping interval"),
        help=_("How often the worker renews its lease."),
    )  # fmt: skip
    retention: timedelta | None = option(
        Seconds(), ALWAYS, carried="column", rest_highest=YEAR,
        label=_("Retention"),
        help=_("How long the task is kept after its end."),
    )  # fmt: skip
    metadata: Mapping[str, Any] = option(
        JsonObject(),
        default={},
        label=_("Metadata"),
        help=_("A JSON object that travels with the task; at most 16 KiB."),
    )

    name: str = option(Name(DEFINITION_NAME, 255), Use.TASK, "")
    takes_context: bool = option(Switch(), Use.TASK, default=False)
    api: bool = option(Switch(), Use.TASK, default=False)
    sensitive: frozenset[str] = option(Checked(check_sensitive), Use.TASK, frozenset())
    atomic: bool = option(Switch(), Use.TASK, default=False)
    per_slot: int = option(Whole(1, MOST_PER_SLOT), Use.TASK, default=1)
    batch: Batch | None = option(Checked(check_batch), Use.TASK)
    notify: Notify | None = option(Checked(check_notify), Use.TASK)
    # The system checks report what is wrong with a schedule.
    schedule: tuple[Scheduled, ...] = option(
        Checked(lambda name, value: scheduled_of(value)), Use.TASK, ()
    )

    @property
    def limits(self) -> Limits:
        """Return all that limits its tasks."""
        return Limits(
            concurrency=self.concurrency,
            rate=self.rate,
            cost=self.cost,
            fair=self.fair,
            sequence=self.sequence,
            requires=self.requires,
            sensitive=self.sensitive,
        )

    @property
    def admission(self) -> Admission | None:
        """Return which of its calls become tasks; None: all, but for a unique key."""
        return self.debounce or self.throttle or self.capacity

    @property
    def has_key(self) -> bool:
        """Return whether its tasks hold a unique key, of their own or for their admission."""
        return self.unique_key is not None or self.admission is not None


OPTIONS: dict[str, Option] = {
    field.name: replace(field.metadata["option"], name=field.name) for field in fields(Options)
}
COLUMNS = tuple(option for option in OPTIONS.values() if option.carried == "column")
SNAPSHOT = tuple(option for option in OPTIONS.values() if option.carried == "snapshot")


def options_for(use: Use) -> dict[str, Option]:
    """Return the options that may be given there, by name."""
    return {name: option for name, option in OPTIONS.items() if use in option.use}


_DECLARED, _USED = options_for(Use.TASK), options_for(Use.USING)


def check_options(raw: Mapping[str, Any], *, declared: bool) -> dict[str, Any]:
    """Return options of `@task` (`declared`) or `.using` in their normal form.

    Raises `InvalidTask` with the remedy.
    """
    allowed = _DECLARED if declared else _USED
    checked = {}
    for name, value in raw.items():
        if name not in allowed:
            raise InvalidTask(_not_allowed(name, allowed))
        checked[name] = allowed[name].check(value)
    return checked


def _not_allowed(name: str, allowed: Mapping[str, Option]) -> str:
    if name in OPTIONS and name not in _DECLARED:
        return (
            f"{name} cannot be defined statically with the @task decorator. "
            f"Use .using({name}=...) to set it dynamically."
        )
    if name in OPTIONS:
        return f"{name} belongs to the definition: set it in @task({name}=...)."
    near = nearest_option(name, OPTIONS)
    if not near:
        return f"There is no option {name!r}."
    if near in allowed:
        return f"There is no option {name!r}. Did you mean {near!r}?"
    return f"There is no option {name!r}. {_not_allowed(near, allowed)}"


def options_from_json(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in JSON or text as `.using()` takes them. Raises `InvalidTask`.

    Values of Python stay as they are; `.using()` checks names and values.
    """
    return {
        name: OPTIONS[name].kind.parse(name, value) if name in OPTIONS else value
        for name, value in raw.items()
    }
