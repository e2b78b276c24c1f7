"""`enqueue`: one task of a definition, by its name; and wait for its end, if asked."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from django.core.management.base import CommandError

from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidTask
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import PERSON, argument, person_of, subcommand
from taskqueue.management.cli.values import (
    CALL,
    VALUES,
    call_of,
    duration,
    options_flag,
    options_of,
    point_in_time,
)
from taskqueue.results import TaskResult
from taskqueue.results.audited_enqueue import enqueue_by_hand

# Options that have a flag of their own.
BY_FLAG = ("queue_name", "priority", "run_after", "unique_key")


@subcommand(
    "enqueue",
    "one task of a definition, by its name",
    argument("name", metavar="NAME", help="of the definition, such as shop.tasks.send"),
    *CALL,
    argument("--queue", dest="queue_name", help=OPTIONS["queue_name"].help),
    argument("--priority", type=int, help=OPTIONS["priority"].help),
    point_in_time(),
    argument("--unique-key", help=OPTIONS["unique_key"].help),
    options_flag(
        "--set",
        f"any other option of `.using()`, such as max_attempts=5 or timeout=30s; {VALUES}",
    ),
    argument(
        "--wait", type=duration, metavar="DURATION",
        help="wait so long for its end; exits with 1 if it does not succeed by then",
    ),
    *PERSON,
    example="enqueue shop.tasks.send_receipt --args '[42]' --wait 30s",
)  # fmt: skip
def enqueue(flags: Namespace, output: Output) -> None:
    result = _enqueued(flags)
    is_late = False
    try:
        if flags.wait is not None:
            result.wait(flags.wait)
    except TimeoutError:
        result.refresh()
        is_late = True
    finally:
        # Also if the waiting was interrupted: the task stays.
        output.say(_told(result), _row(result))
    if is_late:
        raise CommandError(f"Task {result.id} is {result.status}: it has not finished in time.")
    if flags.wait is not None and result.status != TaskStatus.SUCCEEDED:
        raise CommandError(f"Task {result.id} has {_end(result).rstrip('.')}.")


def _enqueued(flags: Namespace) -> TaskResult[Any]:
    """Enqueue with the options of the flags; those that they leave out are the definition's."""
    definition = registry.get(flags.name).using(**options_of(flags, "--set", BY_FLAG))
    call = {"args": [], "kwargs": {}, **call_of(flags)}
    try:
        result: TaskResult[Any] = enqueue_by_hand(definition, **call, **person_of(flags))
    except ArgumentsDoNotBind as error:
        raise usage_error(str(error)) from None
    except TypeError as error:  # Of an option's value.
        raise InvalidTask(str(error)) from None
    return result


def _row(result: TaskResult[Any]) -> dict[str, Any]:
    last = result.errors[-1] if result.is_finished and result.errors else None
    return {
        **{name: getattr(result, name) for name in ("id", "name", "status", "created", "updated")},
        "return_value": result.return_value if result.status == TaskStatus.SUCCEEDED else None,
        "error_class": last and last.exception_class_path,
        "error_message": last and last.message,
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
