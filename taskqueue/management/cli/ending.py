"""`cancel`, `retry`, `duplicate` and `delete`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any
from uuid import UUID

from taskqueue.engine import control
from taskqueue.exceptions import InvalidArguments
from taskqueue.management.cli.base import Subcommand, add_person, usage_error
from taskqueue.management.cli.json_values import json_list, json_object
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act, add_selection


def _add_cancel(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_person(parser)


def _cancel(flags: Namespace, output: Output) -> None:
    act(flags, output, verb="cancel", one=control.cancel, many=control.cancel_many)


def _add_retry(parser: ArgumentParser) -> None:
    add_selection(parser)
    # Django keeps `args` for itself.
    parser.add_argument(
        "--args", type=json_list, dest="new_args", help="a JSON list, in place of the old ones"
    )
    parser.add_argument(
        "--kwargs", type=json_object, dest="new_kwargs", help="a JSON object, likewise"
    )
    add_person(parser)


def _retry(flags: Namespace, output: Output) -> None:
    one: Any = control.retry
    if flags.new_args is not None or flags.new_kwargs is not None:
        if len(flags.ids) != 1:
            raise usage_error("--args and --kwargs are for one task, given by its id.")
        one = partial(_retry_with, args=flags.new_args, kwargs=flags.new_kwargs)
    act(flags, output, verb="retry", one=one, many=control.retry_many)


def _retry_with(task_id: UUID, **options: Any) -> UUID:
    try:
        return control.retry_with(task_id, **options)
    except InvalidArguments as error:  # No task can have them.
        raise usage_error(str(error)) from None


def _add_duplicate(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_person(parser)


def _duplicate(flags: Namespace, output: Output) -> None:
    act(flags, output, verb="duplicate", one=control.duplicate, many=control.duplicate_many)


def _add_delete(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_person(parser)


def _delete(flags: Namespace, output: Output) -> None:
    act(flags, output, verb="delete", one=control.delete, many=control.delete_many)


CANCEL = Subcommand(
    name="cancel",
    help="end what waits, ask what runs to stop",
    add_arguments=_add_cancel,
    run=_cancel,
)
RETRY = Subcommand(
    name="retry",
    help="run finished tasks again",
    add_arguments=_add_retry,
    run=_retry,
    example="retry --query 'status:failed error:SMTPException' --dry-run",
)
DUPLICATE = Subcommand(
    name="duplicate",
    help="enqueue further tasks with the arguments and options of these",
    add_arguments=_add_duplicate,
    run=_duplicate,
)
DELETE = Subcommand(
    name="delete",
    help="delete finished tasks, with their attempts and log lines",
    add_arguments=_add_delete,
    run=_delete,
    example="delete --query 'status:failed name:shop.*' --dry-run",
)
