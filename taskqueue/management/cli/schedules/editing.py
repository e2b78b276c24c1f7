"""`schedules create` and `schedules edit`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from django.core.management.base import CommandError

from taskqueue import schedules
from taskqueue.core.policies import Missed, Overlap
from taskqueue.declarations.scheduled import MOST_FAILURES
from taskqueue.engine.schedules.reading import due_at, rule_text
from taskqueue.exceptions import ScheduleExists
from taskqueue.management.cli.base import Subcommand, add_person, person_of, usage_error
from taskqueue.management.cli.json_values import json_list, json_object
from taskqueue.management.cli.options import VALUES, options_of, typed_option
from taskqueue.management.cli.output import Output, utc
from taskqueue.management.cli.schedules.rule_flags import NONE, add_rule, has_rule, rule_from
from taskqueue.management.cli.schedules.showing import schedule_json
from taskqueue.management.cli.schedules.syncing import load_tasks
from taskqueue.management.cli.times import duration, whole_number
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.schedule import shown_schedules
from taskqueue.monitoring.reading import now

OPTIONS = {"queue": "queue_name", "priority": "priority"}
"""Options that have a flag of their own."""
TAKEN = {
    "task": "task", "new_args": "args", "new_kwargs": "kwargs", "enabled": "enabled",
    "missed": "missed", "missed_window": "missed_window", "overlap": "overlap",
    "pause_after_failures": "pause_after_failures",
}  # fmt: skip
"""Parameters of the verbs by flag; no flag has a default."""


def _add_create(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the schedule, unique in the project")
    add_rule(parser)
    _add_task(parser, required=True)
    _add_policies(parser)
    parser.add_argument(
        "--disabled", action="store_const", const=False, dest="enabled", default=SUPPRESS,
        help="create it disabled; enable it by `edit --enable`",
    )  # fmt: skip
    add_person(parser)


def _create(flags: Namespace, output: Output) -> None:
    values = _taken(flags) | {"options": _options(flags, {})} | person_of(flags)
    rule = rule_from(flags)
    load_tasks()
    try:
        schedule = schedules.create(flags.name, rule=rule, **values)
    except ScheduleExists as error:
        raise CommandError(str(error)) from None  # Refused, though the usage was right.
    _tell(schedule, "created", output)


def _add_edit(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    add_rule(parser)
    task = _add_task(parser, required=False)
    task.add_argument(
        "--unset-option", action="append", default=[], metavar="NAME",
        help="reset an option to the task's own; may be repeated",
    )  # fmt: skip
    _add_policies(parser)
    enabled = parser.add_mutually_exclusive_group()
    for flag, const, text in (
        ("--enable", True, "enable it from now on"),
        ("--disable", False, "disable it: nothing is due or recorded"),
    ):
        enabled.add_argument(
            flag, action="store_const", const=const, dest="enabled", default=SUPPRESS, help=text
        )
    add_person(parser)


def _edit(flags: Namespace, output: Output) -> None:
    before = schedules.get(flags.name)
    changes = _taken(flags)
    if _names_options(flags):
        changes["options"] = _options(flags, before.options)
    if has_rule(flags):
        changes["rule"] = rule_from(flags, before.rule)
    if not changes:
        raise usage_error("Give at least one change, such as --cron, --overlap or --disable.")
    load_tasks()
    schedule = schedules.edit(flags.name, **changes, **person_of(flags))
    is_changed = schedule.changed_at != before.changed_at
    _tell(schedule, "changed" if is_changed else "nothing to change", output)


def _add_task(parser: ArgumentParser, *, required: bool) -> Any:
    group = parser.add_argument_group("what runs")
    group.add_argument("--task", required=required, default=SUPPRESS, metavar="TASK", help="name")
    # Django keeps `args` for itself.
    group.add_argument(
        "--args", type=json_list, dest="new_args", default=SUPPRESS, metavar="JSON", help="a list"
    )
    group.add_argument(
        "--kwargs", type=json_object, dest="new_kwargs", default=SUPPRESS, metavar="JSON",
        help="an object",
    )  # fmt: skip
    group.add_argument("--queue", default=SUPPRESS, help="short for --option queue_name=QUEUE")
    group.add_argument(
        "--priority", type=_number, default=SUPPRESS, help="short for --option priority=N"
    )
    group.add_argument(
        "--option", action="append", type=typed_option, default=[], metavar="OPTION=VALUE",
        help=f"one of `.using()`, such as max_attempts=5; may be repeated; {VALUES}",
    )  # fmt: skip
    return group


def _add_policies(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("how it behaves")
    group.add_argument(
        "--missed", choices=[policy.value for policy in Missed], default=SUPPRESS,
        help="how to handle missed runs; default: latest",
    )  # fmt: skip
    group.add_argument(
        "--missed-window", type=duration, default=SUPPRESS, metavar="DURATION",
        help="with --missed window: how late a run may be",
    )  # fmt: skip
    group.add_argument(
        "--overlap", choices=[policy.value for policy in Overlap], default=SUPPRESS,
        help="how to handle a run that is due while another is running; default: skip",
    )  # fmt: skip
    group.add_argument(
        "--pause-after-failures", type=_failures, default=SUPPRESS, metavar="N",
        help=f"pause it after N failures in a row; {NONE}, the default: never",
    )  # fmt: skip


def _taken(flags: Namespace) -> dict[str, Any]:
    values = vars(flags)
    return {taken: values[flag] for flag, taken in TAKEN.items() if flag in values}


def _options(flags: Namespace, current: dict[str, Any]) -> dict[str, Any]:
    """Return the options, changed by the flags. Raises CommandError."""
    values = vars(flags)
    stated = options_of(flags.option, flag="--option")
    for flag, option in OPTIONS.items():
        if flag in values and option in stated:
            raise usage_error(f"Give --{flag} or --option {option}=..., not both.")
        if flag in values:
            stated[option] = values[flag]
    unset = values.get("unset_option", [])
    if both := sorted(stated.keys() & set(unset)):
        raise usage_error(f"{both[0]} cannot be both set and unset.")
    for option in unset:
        if option not in current:
            known = ", ".join(sorted(current)) or "none"
            raise usage_error(f"The schedule has no option {option!r} of its own; it has: {known}.")
    return {name: value for name, value in current.items() if name not in unset} | stated


def _names_options(flags: Namespace) -> bool:
    values = vars(flags)
    return bool(flags.option or flags.unset_option or any(flag in values for flag in OPTIONS))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError("must be a whole number") from None


def _failures(text: str) -> int | None:
    return None if text == NONE else whole_number(MOST_FAILURES)(text)


def _tell(schedule: Schedule, what: str, output: Output) -> None:
    next_at = utc(due_at(schedule))
    when = f"; next at {next_at} UTC" if next_at else ""
    (shown,) = shown_schedules([schedule], COMMAND_LINE, now())
    output.say(
        f"{schedule.name}  {what}: {rule_text(schedule)}{when}",
        {"done": what, **schedule_json(shown)},
    )


CREATE = Subcommand(
    name="create",
    help="create a schedule, effective from now on",
    add_arguments=_add_create,
    run=_create,
)
EDIT = Subcommand(
    name="edit",
    help="change a schedule; what is not given stays",
    add_arguments=_add_edit,
    run=_edit,
)
