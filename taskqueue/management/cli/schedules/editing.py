"""`schedules create`, `schedules copy` and `schedules edit`."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from taskqueue import schedules
from taskqueue.core.states import Missed, Overlap
from taskqueue.declarations.scheduled import MOST_FAILURES
from taskqueue.engine.schedules.reading import due_at, rule_text
from taskqueue.exceptions import ScheduleExists
from taskqueue.management.cli.cells import utc
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.acting import load_tasks
from taskqueue.management.cli.schedules.rule_flags import NONE, RULE, has_rule, rule_from
from taskqueue.management.cli.schedules.showing import schedule_json
from taskqueue.management.cli.subcommand import (
    NAME,
    PERSON,
    Argument,
    argument,
    group,
    one_of,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import (
    CALL,
    VALUES,
    call_of,
    duration,
    options_flag,
    options_of,
    whole_number,
)
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.schedule import shown_schedules
from taskqueue.monitoring.reading import now

# An argument without a default, so that an edit can see which were given.
optional = partial(argument, default=SUPPRESS)
# Options that have their own flag.
BY_FLAG = ("queue_name", "priority")
# Parameters of the verbs, and their flags.
TAKEN = (
    "task", "enabled", "missed", "missed_window", "overlap", "pause_after_failures", "jitter",
    "max_runs",
)  # fmt: skip


def _number(text: str) -> int | None:
    return None if text == NONE else whole_number(MOST_FAILURES)(text)


def _jitter(text: str) -> timedelta | None:
    return None if text == NONE else duration(text)


def _task(*more: Argument, is_required: bool) -> Argument:
    return group(
        "what runs",
        optional("--task", required=is_required, metavar="TASK", help="name of a task or workflow"),
        *CALL,
        argument(
            "--queue", dest="queue_name", metavar="QUEUE",
            help="short for --option queue_name=QUEUE",
        ),
        argument("--priority", type=int, help="short for --option priority=N"),
        options_flag(
            "--option",
            f"one of `.using()`, such as max_attempts=5; may be repeated; {VALUES}",
        ),
        *more,
    )  # fmt: skip


def _enabled(flag: str, value: bool, help: str) -> Argument:
    return optional(flag, action="store_const", const=value, dest="enabled", help=help)


POLICIES = group(
    "how it behaves",
    optional(
        "--missed", choices=[policy.value for policy in Missed],
        help="how to handle missed runs; default: latest",
    ),
    optional(
        "--missed-window", type=duration, metavar="DURATION",
        help="with --missed window: how late a run may be",
    ),
    optional(
        "--overlap", choices=[policy.value for policy in Overlap],
        help="how to handle a run that is due while another is running; default: skip",
    ),
    optional(
        "--pause-after-failures", type=_number, metavar="N",
        help=f"pause it after N failures in a row; {NONE}, the default: never",
    ),
    optional(
        "--jitter", type=_jitter, metavar="DURATION",
        help=f"start each run up to so much after its time; {NONE}, the default: at its time",
    ),
    optional(
        "--max-runs", type=_number, metavar="N",
        help=f"end the schedule after N runs of its rule; {NONE}, the default: never",
    ),
)  # fmt: skip


@subcommand(
    "create",
    "create a schedule, effective from now on",
    argument("name", metavar="NAME", help="name of the schedule, unique in the project"),
    *RULE,
    _task(is_required=True),
    POLICIES,
    _enabled("--disabled", False, "create it disabled; enable it by `edit --enable`"),
    *PERSON,
)
def create(flags: Namespace, output: Output) -> None:
    values = _taken(flags) | {"options": _options(flags, {})} | person_of(flags)
    rule = rule_from(flags)
    load_tasks()
    try:
        schedule = schedules.create(flags.name, rule=rule, **values)
    except ScheduleExists as error:
        raise CommandError(str(error)) from None  # Refused, although the usage was right.
    _tell(schedule, "created", output)


CHANGES = (
    *RULE,
    _task(
        argument(
            "--unset-option", action="append", default=[], metavar="NAME",
            help="reset an option to that of the declaration; may be repeated",
        ),
        is_required=False,
    ),
    POLICIES,
    one_of(
        _enabled("--enable", True, "enable it from now on"),
        _enabled("--disable", False, "disable it: nothing is due or recorded"),
    ),
    *PERSON,
)  # fmt: skip


@subcommand(
    "copy",
    "create a schedule like another one, effective from now on; fields that are not given are"
    " copied",
    NAME,
    argument("to", metavar="NEW_NAME", help="name of the new schedule, unique in the project"),
    *CHANGES,
    example='schedules copy reports reports-fr --kwargs \'{"region": "fr"}\'',
)
def copy(flags: Namespace, output: Output) -> None:
    changes = _changes(flags, schedules.get(flags.name))
    load_tasks()
    try:
        schedule = schedules.copy(flags.name, flags.to, **changes, **person_of(flags))
    except ScheduleExists as error:
        raise CommandError(str(error)) from None
    _tell(schedule, f"created as a copy of {flags.name}", output)


@subcommand("edit", "change a schedule; fields that are not given are kept", NAME, *CHANGES)
def edit(flags: Namespace, output: Output) -> None:
    before = schedules.get(flags.name)
    changes = _changes(flags, before)
    if not changes:
        raise usage_error("Give at least one change, such as --cron, --overlap or --disable.")
    load_tasks()
    schedule = schedules.edit(flags.name, **changes, **person_of(flags))
    is_changed = schedule.changed_at != before.changed_at
    _tell(schedule, "changed" if is_changed else "nothing to change", output)


def _taken(flags: Namespace) -> dict[str, Any]:
    return {name: vars(flags)[name] for name in TAKEN if name in flags} | call_of(flags)


def _changes(flags: Namespace, before: Schedule) -> dict[str, Any]:
    """Return what the flags change of a schedule."""
    changes = _taken(flags)
    by_flag = any(getattr(flags, name) is not None for name in BY_FLAG)
    if by_flag or flags.options or flags.unset_option:
        changes["options"] = _options(flags, before.options)
    if has_rule(flags):
        changes["rule"] = rule_from(flags, before.rule)
    return changes


def _options(flags: Namespace, current: dict[str, Any]) -> dict[str, Any]:
    """Return the options, changed by the flags. Raises CommandError."""
    stated = options_of(flags, "--option", BY_FLAG)
    unset = getattr(flags, "unset_option", [])
    if both := sorted(stated.keys() & set(unset)):
        raise usage_error(f"{both[0]} cannot be both set and unset.")
    for option in unset:
        if option not in current:
            known = ", ".join(sorted(current)) or "none"
            raise usage_error(f"The schedule has no option {option!r} of its own; it has: {known}.")
    return {name: value for name, value in current.items() if name not in unset} | stated


def _tell(schedule: Schedule, what: str, output: Output) -> None:
    next_at = utc(due_at(schedule))
    when = f"; next at {next_at} UTC" if next_at else ""
    (shown,) = shown_schedules([schedule], COMMAND_LINE, now())
    output.say(
        f"{schedule.name}  {what}: {rule_text(schedule)}{when}",
        {"done": what, **schedule_json(shown)},
    )
