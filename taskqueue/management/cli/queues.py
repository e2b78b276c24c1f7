"""`pause`, `resume` and `queues`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from django.core.management.base import CommandError

from taskqueue import control
from taskqueue.engine.verbs import QUEUE_VERBS
from taskqueue.management.cli.base import Subcommand, add_person, person_of, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import duration, moment
from taskqueue.management.cli.workers import CHOICE, add_worker_choice, chosen_workers
from taskqueue.monitoring.read_models.queue import read_queues

MOST_QUEUES = 1000
COLUMNS = (
    "name", "waiting_count", "oldest_seconds", "running", "slots", "is_served",
    "finished_last_hour", "is_paused", "paused_until", "paused_by", "pause_reason",
)  # fmt: skip


def _add_pause(parser: ArgumentParser) -> None:
    parser.add_argument("queue")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--for", type=duration, dest="until", help="a duration such as 10m")
    end.add_argument("--until", type=moment, help="a time such as 2026-03-01T12:00+00:00")
    add_person(parser)


def _pause(flags: Namespace, output: Output) -> None:
    pausing = QUEUE_VERBS["pause"]
    pausing.act(flags.queue, until=flags.until, **person_of(flags))
    output.say(pausing.told(flags.queue), {"name": flags.queue, "is_paused": True})


def _add_resume(parser: ArgumentParser) -> None:
    parser.add_argument("paused", nargs="?", metavar="queue", help="a paused queue")
    add_worker_choice(parser, instead_of="a queue")
    add_person(parser)


def _resume(flags: Namespace, output: Output) -> None:
    which = chosen_workers(flags)
    if (flags.paused is None) == (which is None):
        raise usage_error(f"Give a paused queue, or {CHOICE} for quiet workers.")
    if which is not None:
        _resume_workers(which, flags, output)
        return
    resuming = QUEUE_VERBS["resume"]
    resuming.act(flags.paused, **person_of(flags))
    output.say(resuming.told(flags.paused), {"name": flags.paused, "is_paused": False})


def _resume_workers(which: control.WorkerFilter, flags: Namespace, output: Output) -> None:
    names = control.resume_workers(which, **person_of(flags))
    if not names:
        raise CommandError("None of these workers is quiet; one that is to stop stops.")
    output.say("\n".join(f"{name}  asked to resume" for name in names), {"workers": names})


def _queues(flags: Namespace, output: Output) -> None:
    output.models(read_queues(limit=MOST_QUEUES), COLUMNS)


PAUSE = Subcommand(
    name="pause",
    help=QUEUE_VERBS["pause"].help,
    add_arguments=_add_pause,
    run=_pause,
)
RESUME = Subcommand(
    name="resume",
    help="end the pause of a queue, or let quiet workers claim tasks again",
    add_arguments=_add_resume,
    run=_resume,
    example="resume --worker paris-1",
)
QUEUES = Subcommand(
    name="queues",
    help="what waits and runs in each queue, who serves it, and which are paused",
    add_arguments=lambda parser: None,
    run=_queues,
)
