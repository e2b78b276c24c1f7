"""`stop`: ask tasks, or workers, to stop."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection

from django.core.management.base import CommandError

from taskqueue.engine import control
from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand, add_person, given, person_of, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act_on_ids
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerRequest


def _add_stop(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="of tasks; what waits ends at once")
    workers = parser.add_argument_group("workers in place of tasks")
    workers.add_argument(
        "--worker", action="append", type=given, metavar="NAME", help="may be repeated"
    )
    workers.add_argument("--all-workers", action="store_true")
    workers.add_argument("--host", type=given)
    workers.add_argument("--queue", type=given, help="all that take tasks from this queue")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--quiet", action="store_const", dest="request", const=WorkerRequest.QUIET,
        help="claim nothing more, finish what runs, and stay",
    )  # fmt: skip
    how.add_argument(
        "--kill", action="store_const", dest="request", const=WorkerRequest.KILL,
        help="return what runs, and end at once",
    )  # fmt: skip
    add_person(parser)


def _stop(flags: Namespace, output: Output) -> None:
    of_workers = bool(flags.worker or flags.all_workers or flags.host or flags.queue)
    if bool(flags.ids) == of_workers:
        raise usage_error("Give the ids of tasks, or --worker, --host, --queue or --all-workers.")
    if flags.all_workers and (flags.worker or flags.host or flags.queue):
        raise usage_error("--all-workers is for every worker: leave it out, or the other flags.")
    if of_workers:
        _stop_workers(flags, output)
    elif flags.request is not None:
        raise usage_error("--quiet and --kill are for workers.")
    else:
        # Not `request_stop`: whoever wants a task stopped does not care whether it just waits.
        act_on_ids(flags, output, verb="stop", one=control.cancel)


def _stop_workers(flags: Namespace, output: Output) -> None:
    which = control.WorkerFilter(
        names=flags.worker,
        host=flags.host or "",
        queue_name=flags.queue or "",
        everyone=flags.all_workers,
    )
    request = flags.request or WorkerRequest.STOP
    names = control.request_workers(which, request, **person_of(flags))
    if not names:
        raise CommandError("No worker fits.")
    asked = _asked(names)
    output.say(
        "\n".join(f"{name}  asked: {each}" for name, each in asked.items()),
        {"request": request.value, "workers": names, "asked": asked},
    )


def _asked(names: Collection[str]) -> dict[str, str]:
    """What each is really asked for: a weaker request does not replace a stronger one."""
    workers = Worker.objects.using(project_connection().alias).filter(name__in=names)
    return dict(workers.order_by("name").values_list("name", "request"))


STOP = Subcommand(
    name="stop",
    help="ask tasks, or workers, to stop",
    add_arguments=_add_stop,
    run=_stop,
    example='stop --worker paris-1 --quiet --reason "a deploy"',
)
