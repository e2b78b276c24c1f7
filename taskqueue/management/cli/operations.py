"""`operations …`: verbs on many tasks, which workers apply in the background."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue import control
from taskqueue.core.naming import counted
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.verbs import OPERATION_VERBS
from taskqueue.management.cli.acting import PARAMETERS
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    ID,
    PERSON,
    Subcommand,
    actions_of,
    argument,
    group,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import FILTER_FLAGS, filter_of, has_filters, options_of
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.operation import operation_details, shown_operation

MOST_OPERATIONS = 100
OPERATIONS_SHOWN = (
    "id", "verb", "status", "done", "expected", "requested_by", "query", "created_at",
)  # fmt: skip
CANCEL = OPERATION_VERBS["cancel"]


@subcommand("list", "the newest operations")
def listed(flags: Namespace, output: Output) -> None:
    newest = control.operations()[:MOST_OPERATIONS]
    output.models([shown_operation(row, EVERYTHING) for row in newest], OPERATIONS_SHOWN)


@subcommand("show", "one operation, with its progress", ID)
def show(flags: Namespace, output: Output) -> None:
    output.sheet(operation_details(control.get_operation(flags.id), EVERYTHING))


@subcommand("cancel", CANCEL.help, ID, *PERSON)
def cancel(flags: Namespace, output: Output) -> None:
    operation = CANCEL.act(flags.id, **person_of(flags))
    output.say(f"{operation.id}  {CANCEL.done}", shown_operation(operation, EVERYTHING))


@subcommand(
    "start",
    "an action on many tasks, which workers do in the background",
    argument("verb", choices=sorted(BULK_VERBS), metavar="VERB", help=", ".join(BULK_VERBS)),
    FILTER_FLAGS,
    argument("--all", action="store_true", help="choose every task"),
    group("for reschedule", PARAMETERS["run_after"](False)),
    group("for update", PARAMETERS["changes"](False)),
    *PERSON,
    example="operations start retry --query 'status:failed name:mail.*' --reason 'server is back'",
)
def start(flags: Namespace, output: Output) -> None:
    if has_filters(flags) == flags.all:
        either = "not both" if flags.all else "or --all for every task"
        raise usage_error(f"Give flags that choose tasks, {either}.")
    given: dict[str, Any] = {}
    if flags.run_after is not None:
        given["run_after"] = flags.run_after
    if flags.options:
        given["changes"] = options_of(flags, "--set")
    wanted = {parameter.name for parameter in BULK_VERBS[flags.verb].parameters}
    if given.keys() != wanted:
        needs = {"run_after": "--at or --in", "changes": "--set"}
        told = " and ".join(needs[name] for name in sorted(wanted)) or "no --at, --in or --set"
        raise usage_error(f"{flags.verb} takes {told}.")
    try:
        operation = control.start_operation(
            flags.verb, filter_of(flags, everything=flags.all), query=flags.query or "",
            arguments=given, **person_of(flags),
        )  # fmt: skip
    except ValueError as error:
        raise usage_error(str(error)) from None
    number = "" if operation.expected is None else f" of {counted(operation.expected, 'task')}"
    told = f"{operation.id}  {flags.verb}{number} started; workers do it"
    output.say(told, shown_operation(operation, EVERYTHING))


operations = Subcommand(
    name="operations",
    help="view, start and cancel actions on many tasks in the background",
    arguments=[actions_of(listed, show, start, cancel)],
    run=listed.run,
)
