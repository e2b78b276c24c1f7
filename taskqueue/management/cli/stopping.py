"""`stop`: ask tasks, or workers, to stop."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from functools import partial

from django.core.management.base import CommandError

from taskqueue import control
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.management.cli.base import Subcommand, add_person, person_of, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act_on_ids
from taskqueue.management.cli.workers import CHOICE, add_worker_choice, chosen_workers
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerRequest


def _add_stop(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="of tasks; what waits ends at once")
    parser.add_argument("--yes", action="store_true", help="also if a lost worker holds the task")
    add_worker_choice(parser, instead_of="tasks")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--quiet", action="store_const", dest="request", const=WorkerRequest.QUIET,
        help="claim nothing more, finish what runs, and stay, until `resume --worker NAME`",
    )  # fmt: skip
    how.add_argument(
        "--kill", action="store_const", dest="request", const=WorkerRequest.KILL,
        help="return what runs, and end at once",
    )  # fmt: skip
    add_person(parser)


def _stop(flags: Namespace, output: Output) -> None:
    which = chosen_workers(flags)
    if bool(flags.ids) == (which is not None):
        raise usage_error(f"Give the ids of tasks, or {CHOICE}.")
    if which is not None:
        _stop_workers(which, flags, output)
    elif flags.request is not None:
        raise usage_error("--quiet and --kill are for workers.")
    else:
        # Not `request_stop`: a task that only waits is to end too.
        act_on_ids(
            flags,
            output,
            TASK_VERBS["stop"],
            one=partial(TASK_VERBS["cancel"].act, ended_by="stop"),
        )


def _stop_workers(which: control.WorkerFilter, flags: Namespace, output: Output) -> None:
    request = flags.request or WorkerRequest.STOP
    names = control.request_workers(which, request, **person_of(flags))
    if not names:
        raise CommandError("No worker matches.")
    asked = _asked(names)
    output.say(
        "\n".join(f"{name}  asked: {each}" for name, each in asked.items()),
        {"request": request.value, "workers": names, "asked": asked},
    )


def _asked(names: Collection[str]) -> dict[str, str]:
    """Return the request of each worker: a weaker request does not replace a stronger one."""
    workers = Worker.objects.using(project_connection().alias).filter(name__in=names)
    return dict(workers.order_by("name").values_list("name", "request"))


STOP = Subcommand(
    name="stop",
    help="ask tasks, or workers, to stop",
    add_arguments=_add_stop,
    run=_stop,
    example='stop --worker paris-1 --quiet --reason "a deploy"',
)
