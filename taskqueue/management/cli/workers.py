"""`workers`; `stop` and `resume`, which are for workers too; `pause`."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from taskqueue import control
from taskqueue.declarations.serving import MOST_CONCURRENCY
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.queue_verbs import ALL_VERBS, DEFINITION_VERBS, QUEUE_VERBS
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.unknown_names import unknown_queue
from taskqueue.engine.control.worker_changes import CHANGES, checked_changes
from taskqueue.engine.control.worker_verbs import WORKER_VERBS
from taskqueue.engine.control.workers import WorkerFilter
from taskqueue.management.cli.acting import Lines, act_on_ids, for_each
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    PERSON,
    Argument,
    Subcommand,
    actions_of,
    argument,
    group,
    not_empty,
    one_of,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import duration, moment, whole_number
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerRequest
from taskqueue.monitoring.read_models.pause import pause_of, read_pauses
from taskqueue.monitoring.read_models.worker import GONE, shown_worker, worker_rows

MOST = 1000
CHOICE = "--worker, --host, --queue or --all-workers"
WORKER_COLUMNS = (
    "name", "state", "host", "pid", "queues", "tags", "busy", "slots", "memory_bytes",
    "cpu_percent", "version", "seen_seconds", "request", "wanted", "trouble",
)  # fmt: skip


# For `workers` and `workers list`: a separate default would override a flag before `list`.
_LISTED = (
    argument(
        "--all", action="store_true", default=SUPPRESS, help="include workers that have ended"
    ),
    argument("--host", default=SUPPRESS, help="only workers on this host"),
    argument("--queue", default=SUPPRESS, help="only workers that serve this queue"),
)


_OTHER_PAUSES = (
    argument("--definition", type=not_empty, metavar="NAME", help="in place of a queue"),
    argument("--all", action="store_true", help="everything, in place of a queue"),
)


def _worker_choice(instead_of: str) -> Argument:
    return group(
        f"workers in place of {instead_of}",
        argument(
            "--worker", action="append", type=not_empty, metavar="NAME", help="may be repeated"
        ),
        argument("--all-workers", action="store_true"),
        argument("--host", type=not_empty),
        argument("--queue", type=not_empty, help="all workers that serve this queue"),
    )


def _chosen_workers(flags: Namespace) -> WorkerFilter | None:
    """Return the chosen workers; None if no flag chooses any. Raises CommandError."""
    some = flags.worker or flags.host or flags.queue
    if not (some or flags.all_workers):
        return None
    if some and flags.all_workers:
        raise usage_error("--all-workers chooses every worker: omit it, or the other flags.")
    return WorkerFilter(
        names=flags.worker,
        host=flags.host or "",
        queue_name=flags.queue or "",
        everyone=flags.all_workers,
    )


@subcommand(
    "list",
    "the workers: their state, slots and requests",
    *_LISTED,
    example="workers list --queue mail",
)
def listed_workers(flags: Namespace, output: Output) -> None:
    rows = worker_rows().order_by("name")
    given = vars(flags)
    host, queue = given.get("host"), given.get("queue")
    if not given.get("all"):
        rows = rows.exclude(status__in=GONE)
    if host:
        rows = rows.filter(host=host)
    shown = [shown_worker(row) for row in rows[:MOST]]
    output.models(
        [worker for worker in shown if not queue or worker.serves(queue)],
        WORKER_COLUMNS,
    )


@subcommand(
    "change",
    WORKER_VERBS["change"].help,
    argument("names", nargs="+", metavar="NAME"),
    argument("--concurrency", type=whole_number(MOST_CONCURRENCY), help="number of slots"),
    argument("--queues", help="as of runworker, such as critical=6,mail=3@2; '': all queues"),
    one_of(
        argument(
            "--strict",
            action="store_true",
            default=None,
            help="empty the queues in their order",
        ),
        argument(
            "--no-strict",
            action="store_false",
            dest="strict",
            default=None,
            help="serve the queues by their weights",
        ),
    ),
    argument("--definition-slots", metavar="NAME=SLOTS,…", help="as of runworker; '': no limits"),
    *PERSON,
    example='workers change paris-1 --concurrency 4 --queues mail=3@2,default --reason "a sale"',
)
def change(flags: Namespace, output: Output) -> None:
    changes = checked_changes({name: getattr(flags, name) for name in CHANGES})

    def attempt(name: str) -> dict[str, Any]:
        WORKER_VERBS["change"].act(name, **changes, **person_of(flags))
        return {"wanted": changes}

    def tell(lines: Lines) -> None:
        text = (f"{line['name']}  {line.get('error') or 'asked to change'}" for line in lines)
        output.say(text, {"workers": lines})

    for_each(flags.names, attempt, output, key="name", tell=tell)


workers = Subcommand(
    name="workers",
    help="view workers, and change their slots and queues while they run",
    arguments=[*_LISTED, actions_of(listed_workers, change)],
    run=listed_workers.run,
    example="workers --queue mail",
)


@subcommand(
    "stop",
    "ask tasks, or workers, to stop",
    argument("ids", nargs="*", metavar="ID", help="of tasks; waiting tasks end at once"),
    argument("--yes", action="store_true", help="required if a lost worker holds the task"),
    _worker_choice("tasks"),
    one_of(
        argument(
            "--quiet", action="store_const", dest="request", const=WorkerRequest.QUIET,
            help=f"{WORKER_VERBS['quiet'].help}, until `resume --worker NAME`",
        ),
        argument(
            "--kill", action="store_const", dest="request", const=WorkerRequest.KILL,
            help=WORKER_VERBS["kill"].help,
        ),
    ),
    *PERSON,
    example='stop --worker paris-1 --quiet --reason "a deploy"',
)  # fmt: skip
def stop(flags: Namespace, output: Output) -> None:
    which = _chosen_workers(flags)
    if bool(flags.ids) == (which is not None):
        raise usage_error(f"Give the ids of tasks, or {CHOICE}.")
    if which is not None:
        _request(which, flags, output)
    elif flags.request is not None:
        raise usage_error("--quiet and --kill are for workers.")
    else:
        # Not `request_stop`: a task that only waits must end too.
        cancel = partial(TASK_VERBS["cancel"].act, ended_by="stop")
        act_on_ids(flags, output, "stop", cancel, ends_attempt=True)


def _request(which: WorkerFilter, flags: Namespace, output: Output) -> None:
    request = flags.request or WorkerRequest.STOP
    names = control.request_workers(which, request, **person_of(flags))
    if not names:
        raise CommandError("No worker matches.")
    # A weaker request does not replace a stronger one.
    rows = Worker.objects.using(project_connection().alias).filter(name__in=names).order_by("name")
    asked: dict[str, Any] = dict(rows.values_list("name", "request"))
    output.say(
        (f"{name}  asked: {request}" for name, request in asked.items()),
        {"request": request.value, "workers": names, "asked": asked},
    )


@subcommand(
    "resume",
    "end the pause of a queue, a definition or everything, or let quiet workers claim again",
    argument("paused", nargs="?", metavar="queue", help="a paused queue"),
    *_OTHER_PAUSES,
    _worker_choice("a queue"),
    *PERSON,
    example="resume --worker paris-1",
)
def resume(flags: Namespace, output: Output) -> None:
    which = _chosen_workers(flags)
    chosen = [flags.paused is not None, which is not None, flags.definition, flags.all]
    if sum(map(bool, chosen)) != 1:
        raise usage_error(
            f"Give a paused queue, --definition NAME, --all, or {CHOICE} for quiet workers."
        )
    if flags.definition or flags.all:
        _pause_other(flags, output, "resume")
        return
    if which is None:
        QUEUE_VERBS["resume"].act(flags.paused, **person_of(flags))
        told = QUEUE_VERBS["resume"].told(flags.paused)
        output.say(told, {"name": flags.paused, "is_paused": False})
        return
    names = control.resume_workers(which, **person_of(flags))
    if not names:
        raise CommandError("None of these workers is quiet; one that is to stop stops.")
    output.say((f"{name}  asked to resume" for name in names), {"workers": names})


@subcommand(
    "pause",
    "let no worker claim the tasks of a queue, of a definition, or any; running tasks continue",
    argument("queue", nargs="?"),
    *_OTHER_PAUSES,
    one_of(
        argument("--for", type=duration, dest="until", help="a duration such as 10m"),
        argument("--until", type=moment, help="a time such as 2026-03-01T12:00+00:00"),
    ),
    *PERSON,
)
def pause(flags: Namespace, output: Output) -> None:
    if sum(map(bool, [flags.queue is not None, flags.definition, flags.all])) != 1:
        raise usage_error("Give a queue, --definition NAME, or --all.")
    if flags.queue is None:
        _pause_other(flags, output, "pause", until=flags.until)
        return
    QUEUE_VERBS["pause"].act(flags.queue, until=flags.until, **person_of(flags))
    hint = unknown_queue(project_connection(), flags.queue)
    _tell(
        output,
        QUEUE_VERBS["pause"].told(flags.queue),
        {"name": flags.queue, "is_paused": True, "hint": hint},
    )


def _pause_other(flags: Namespace, output: Output, verb: str, **arguments: Any) -> None:
    """Pause or resume a definition, or everything."""
    done = ALL_VERBS[f"{verb}_all"] if flags.all else DEFINITION_VERBS[verb]
    done.act(flags.definition or "", **arguments, **person_of(flags))
    _tell(output, done.told(flags.definition or ""), vars(pause_of(flags.definition)))


def _tell(output: Output, text: str, state: dict[str, Any]) -> None:
    """Report that it is done, and warn of a name that is probably misspelled."""
    output.say(text, state)
    if state["hint"]:
        output.note(state["hint"])


@subcommand("pauses", "pauses of everything and of definitions; for pauses of queues, see `queues`")
def pauses(flags: Namespace, output: Output) -> None:
    output.models(
        read_pauses(),
        ("definition", "paused_at", "paused_until", "paused_by", "pause_reason"),
    )
