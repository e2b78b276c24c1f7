"""`enqueue`: one task of a definition, by its name; and wait for its end, if asked."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidTask
from taskqueue.management.cli.base import Subcommand, add_person, person_of, usage_error
from taskqueue.management.cli.json_values import json_list, json_object
from taskqueue.management.cli.options import VALUES, options_of, typed_option
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import duration, moment
from taskqueue.results import TaskResult
from taskqueue.results.audited_enqueue import enqueue_by_hand


def _add_enqueue(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the definition, such as shop.tasks.send")
    # Django keeps `args` for itself.
    parser.add_argument(
        "--args", type=json_list, dest="new_args", default=[], metavar="JSON",
        help="a list, such as '[42]'",
    )  # fmt: skip
    parser.add_argument(
        "--kwargs", type=json_object, dest="new_kwargs", default={}, metavar="JSON",
        help="""an object, such as '{"order_id": 42}'""",
    )  # fmt: skip
    parser.add_argument("--queue", help=OPTIONS["queue_name"].help)
    parser.add_argument("--priority", type=int, help=OPTIONS["priority"].help)
    time = parser.add_mutually_exclusive_group()
    time.add_argument("--at", type=moment, metavar="TIME", help="such as 2026-03-01T12:00+00:00")
    time.add_argument("--in", type=duration, dest="at", metavar="DURATION", help="such as 10m")
    parser.add_argument("--unique-key", help=OPTIONS["unique_key"].help)
    parser.add_argument(
        "--set", action="append", type=typed_option, default=[], metavar="OPTION=VALUE",
        help=f"any other option of `.using()`, such as max_attempts=5 or timeout=30s; {VALUES}",
    )  # fmt: skip
    parser.add_argument(
        "--wait", type=duration, metavar="DURATION",
        help="wait so long for its end; exits with 1 if it does not succeed by then",
    )  # fmt: skip
    add_person(parser)


def _enqueue(flags: Namespace, output: Output) -> None:
    definition = registry.get(flags.name).using(**_options(flags))
    result = _enqueued(definition, flags)
    try:
        is_late = flags.wait is not None and _is_late(result, flags.wait)
    finally:
        # Also if the waiting was interrupted: the task stays.
        output.say(_told(result), _row(result))
    if is_late:
        raise CommandError(f"Task {result.id} is {result.status}: it has not finished in time.")
    if flags.wait is not None and result.status != TaskStatus.SUCCEEDED:
        raise CommandError(f"Task {result.id} has {_end(result).rstrip('.')}.")


def _options(flags: Namespace) -> dict[str, Any]:
    """What is said by flags; what is not is the definition's."""
    options = options_of(flags.set, flag="--set")
    own = {
        "queue_name": flags.queue,
        "priority": flags.priority,
        "run_after": flags.at,
        "unique_key": flags.unique_key,
    }
    for name, value in own.items():
        if value is not None:
            if name in options:
                raise usage_error(f"{name} is given twice.")
            options[name] = value
    return options


def _enqueued(definition: BaseDefinition[..., Any], flags: Namespace) -> TaskResult[Any]:
    try:
        who = person_of(flags)
        result: TaskResult[Any] = enqueue_by_hand(
            definition, flags.new_args, flags.new_kwargs, by=who["by"], reason=who["reason"]
        )
    except ArgumentsDoNotBind as error:
        raise usage_error(str(error)) from None
    except TypeError as error:  # Of an option's value.
        raise InvalidTask(str(error)) from None
    return result


def _is_late(result: TaskResult[Any], seconds: timedelta) -> bool:
    try:
        result.wait(seconds)
    except TimeoutError:
        result.refresh()
        return True
    return False


def _row(result: TaskResult[Any]) -> dict[str, Any]:
    value = result.return_value if result.status == TaskStatus.SUCCEEDED else None
    last = result.errors[-1] if result.is_finished and result.errors else None
    return {
        "id": result.id,
        "name": result.name,
        "status": result.status,
        "created": result.created,
        "updated": result.updated,
        "return_value": value,
        "error_class": None if last is None else last.exception_class_path,
        "error_message": None if last is None else last.message,
    }


def _told(result: TaskResult[Any]) -> str:
    if result.is_finished:
        return f"{result.id}  {_end(result)}"
    if result.created:
        return f"{result.id}  enqueued: {result.status}"
    done = "changed" if result.updated else "nothing enqueued"
    return f"{result.id}  {done}: this task holds the unique key, and is {result.status}"


def _end(result: TaskResult[Any]) -> str:
    if result.status == TaskStatus.CANCELLED:
        by = f" by {result.cancelled_by}" if result.cancelled_by else ""
        reason = f": {' '.join(result.cancel_reason.split())}" if result.cancel_reason else ""
        return f"cancelled{by}{reason}"
    if result.status == TaskStatus.SUCCEEDED or not result.errors:
        return str(result.status)
    last = result.errors[-1]
    return f"{result.status} with {last.exception_class_path}: {' '.join(last.message.split())}"


ENQUEUE = Subcommand(
    name="enqueue",
    help="one task of a definition, by its name",
    add_arguments=_add_enqueue,
    run=_enqueue,
    example="enqueue shop.tasks.send_receipt --args '[42]' --wait 30s",
)
