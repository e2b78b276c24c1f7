"""`pause`, `resume` and `queues`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from taskqueue.engine import control
from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import duration, moment
from taskqueue.models import Queue, Task
from taskqueue.models.clock import DatabaseClock
from taskqueue.states import TaskStatus

MOST_COUNTED = 10_000
"""Tasks of a queue that are counted; a queue may hold millions."""
MOST_QUEUES = 1000


def _add_pause(parser: ArgumentParser) -> None:
    parser.add_argument("queue")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--for", type=duration, dest="until", help="a duration such as 10m")
    end.add_argument("--until", type=moment, help="a time such as 2026-03-01T12:00+00:00")
    add_person(parser)


def _pause(flags: Namespace, output: Output) -> None:
    control.pause(flags.queue, until=flags.until, **person_of(flags))
    output.say(
        f"{flags.queue}  paused; what runs goes on", {"queue": flags.queue, "is_paused": True}
    )


def _add_resume(parser: ArgumentParser) -> None:
    parser.add_argument("queue")
    add_person(parser)


def _resume(flags: Namespace, output: Output) -> None:
    control.resume(flags.queue, **person_of(flags))
    output.say(f"{flags.queue}  resumed", {"queue": flags.queue, "is_paused": False})


def _queues(flags: Namespace, output: Output) -> None:
    alias = project_connection().alias
    queues = Queue.objects.using(alias).annotate(now=DatabaseClock()).order_by("name")
    rows = [_row(queue, alias) for queue in queues[:MOST_QUEUES]]
    columns = ("queue", "ready", "paused", "paused_until", "paused_by", "pause_reason")
    output.table(rows, columns)


def _row(queue: Any, alias: str) -> dict[str, Any]:
    ready = Task.objects.using(alias).filter(queue_name=queue.name, status=TaskStatus.READY)
    counted = ready.filter(claimed_apart=False)[: MOST_COUNTED + 1].count()
    is_paused = queue.is_paused_at(queue.now)
    return {
        "queue": queue.name,
        "ready": counted if counted <= MOST_COUNTED else f"{MOST_COUNTED}+",
        "paused": is_paused,
        "paused_at": queue.paused_at if is_paused else None,
        "paused_until": queue.paused_until if is_paused else None,
        "paused_by": queue.paused_by if is_paused else "",
        "pause_reason": queue.pause_reason if is_paused else "",
    }


PAUSE = Subcommand(
    name="pause",
    help="let nobody claim the tasks of a queue; what runs goes on",
    add_arguments=_add_pause,
    run=_pause,
)
RESUME = Subcommand(
    name="resume",
    help="end the pause of a queue",
    add_arguments=_add_resume,
    run=_resume,
)
QUEUES = Subcommand(
    name="queues",
    help="which queues there are, and which are paused",
    add_arguments=lambda parser: None,
    run=_queues,
)
