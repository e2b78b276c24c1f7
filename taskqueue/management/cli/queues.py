"""`queues …`: list, show, limit and delete queues, and show how tenants share one."""

from __future__ import annotations

from argparse import Namespace

from django.core.management.base import CommandError

from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.queue_verbs import QUEUE_VERBS
from taskqueue.engine.control.unknown_names import unknown_queue
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.limits import RATE, places
from taskqueue.management.cli.output import Output, readable
from taskqueue.management.cli.subcommand import (
    NAME,
    PERSON,
    Subcommand,
    actions_of,
    argument,
    person_of,
    subcommand,
)
from taskqueue.monitoring.fairness import fairness_of
from taskqueue.monitoring.read_models.queue import queue_named, read_queues
from taskqueue.monitoring.read_models.queue_details import details_of

MOST = 1000
COLUMNS = (
    "name", "waiting_count", "oldest_seconds", "running", "slots", "is_served",
    "finished_last_hour", "is_paused", "paused_until", "paused_by", "pause_reason", "limit",
)  # fmt: skip
TENANT_COLUMNS = ("key", "weight", "waiting", "oldest_seconds", "starts", "wait_p95_seconds")


@subcommand("list", "what waits and runs in each queue, who serves it, and which are paused")
def listed(flags: Namespace, output: Output) -> None:
    output.models(read_queues(limit=MOST), COLUMNS)


@subcommand("show", "one queue: its tasks by status, who serves it, its limit", NAME)
def show(flags: Namespace, output: Output) -> None:
    found = queue_named(flags.name)
    if found is None:
        known = [queue.name for queue in read_queues(limit=MOST)]
        hint = did_you_mean(flags.name, known)
        raise CommandError(f"No task or worker has or had a queue {flags.name!r}.{hint}")
    shown = details_of(found)
    if output.is_json:
        output.sheet(shown)
        return
    tasks = {each.status: str(each) for each in shown.tasks if each.count}
    output.sheet({**readable(found), "tasks": tasks, "workers": shown.workers,
                  "per_second": round(shown.per_second, 3)})  # fmt: skip


@subcommand(
    "delete", QUEUE_VERBS["delete"].help, NAME, *PERSON, example="queues delete old-imports"
)
def delete(flags: Namespace, output: Output) -> None:
    verb = QUEUE_VERBS["delete"]
    verb.act(flags.name, **person_of(flags))
    output.say(verb.told(flags.name), {"queue": flags.name, "done": True})


@subcommand(
    "limit",
    QUEUE_VERBS["limit"].help,
    NAME,
    places(least=1),
    RATE,
    argument("--lift", action="store_true", help="lift the limit"),
    *PERSON,
    example="queues limit mail --concurrency 20 --rate 100/m",
)
def limit(flags: Namespace, output: Output) -> None:
    has_numbers = flags.concurrency is not None or flags.rate is not None
    if has_numbers == flags.lift:
        either = "not both" if flags.lift else "or --lift to have no limit"
        raise usage_error(f"Give --concurrency or --rate, {either}.")
    verb = QUEUE_VERBS["limit"]
    verb.act(flags.name, concurrency=flags.concurrency, rate=flags.rate, **person_of(flags))
    done = f"Limit of queue {flags.name} lifted." if flags.lift else verb.told(flags.name)
    output.say(done, queue_named(flags.name))
    if hint := unknown_queue(project_connection(), flags.name):
        output.note(hint)


@subcommand(
    "fairness",
    "how tenants share a queue: the largest, with starts and waiting times of the last hour",
    NAME,
    example="queues fairness mail",
)
def fairness(flags: Namespace, output: Output) -> None:
    found = fairness_of(flags.name)
    if output.is_json:
        output.sheet(found)
        return
    output.models(found.tenants, TENANT_COLUMNS)
    if found.index is not None:
        output.note(
            f"Jain's index: {found.index:.3f} (1: every tenant got the share of its weight)"
        )


queues = Subcommand(
    name="queues",
    help="view, limit and delete queues",
    arguments=[actions_of(listed, show, limit, fairness, delete)],
    run=listed.run,
)
