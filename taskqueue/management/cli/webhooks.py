"""`webhooks …`: view, create and change endpoints, and send them tests and events again."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue import webhooks as verbs
from taskqueue.engine.webhooks.checking import EDITABLE
from taskqueue.engine.webhooks.verbs import WEBHOOK_VERBS
from taskqueue.management.cli.acting import for_each
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    ID,
    PERSON,
    Argument,
    Subcommand,
    actions_of,
    argument,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import PAST, past, whole_number
from taskqueue.models import Endpoint
from taskqueue.models.webhook import DeliveryStatus, Include
from taskqueue.monitoring.read_models.base import EVERYTHING, json_form
from taskqueue.monitoring.read_models.operation import shown_operation
from taskqueue.monitoring.read_models.webhook import (
    ShownEndpoint,
    delivery_rows,
    read_endpoints,
    shown_deliveries,
    shown_endpoints,
)

COLUMNS = ("id", "state", "url", "kinds", "waiting_count", "failing_since", "description")
DELIVERIES = (
    "id", "seq", "kind", "status", "attempts", "answer_status", "milliseconds", "attempted_at",
    "next_at", "error",
)  # fmt: skip
MOST_DELIVERIES = 1_000
URL = argument("url", metavar="URL", help="https, on port 443 or 8443")


def patterns(flag: str, what: str) -> Argument:
    """Return a flag for patterns, which may be repeated."""
    return argument(
        flag, action="append", default=None, metavar="PATTERN",
        help=f"{what}; may be repeated; none: all",
    )  # fmt: skip


WANTED = (
    patterns("--kind", "kinds of events, such as task.failed or 'task.*'"),
    patterns("--name", "names of tasks and workflows, such as 'shop.*'"),
    patterns("--queue", "names of queues"),
    argument(
        "--include", action="append", default=None, choices=[each.value for each in Include],
        help="further content of messages; error: the class and message of the error",
    ),
    argument("--description", default=None, metavar="TEXT", help="a description of the endpoint"),
)  # fmt: skip
# The columns for the flags that may be repeated.
FIELDS = {"kind": "kinds", "name": "names", "queue": "queues", "include": "include"}


@subcommand("list", "the endpoints, with what waits to be sent to each")
def listed(flags: Namespace, output: Output) -> None:
    output.models(read_endpoints(), COLUMNS)


@subcommand("show", "one endpoint", ID, example="webhooks show 3")
def show(flags: Namespace, output: Output) -> None:
    output.sheet(_shown(verbs.get(flags.id)))


@subcommand(
    "create",
    WEBHOOK_VERBS["create"].help,
    URL,
    *WANTED,
    *PERSON,
    example="webhooks create https://hooks.example.com/in --kind task.failed --name 'shop.*'",
)
def create(flags: Namespace, output: Output) -> None:
    made = verbs.create(flags.url, **_given(flags), **person_of(flags))
    _tell_secret(made, output, "created")


@subcommand(
    "edit",
    WEBHOOK_VERBS["edit"].help,
    ID,
    argument("--url", default=None, metavar="URL", help="https, on port 443 or 8443"),
    *WANTED,
    *PERSON,
    example="webhooks edit 3 --kind task.failed --kind workflow.failed",
)
def edit(flags: Namespace, output: Output) -> None:
    changes = _given(flags) | ({} if flags.url is None else {"url": flags.url})
    if not changes:
        raise usage_error(f"Give what is to change: {', '.join(EDITABLE)}.")
    row = verbs.edit(flags.id, **changes, **person_of(flags))
    output.say(WEBHOOK_VERBS["edit"].told(row.name), _shown(row))


def _simple(name: str) -> Subcommand:
    """Return the subcommand of a verb that takes only an endpoint."""

    @subcommand(name, WEBHOOK_VERBS[name].help, ID, *PERSON)
    def act(flags: Namespace, output: Output) -> None:
        row = WEBHOOK_VERBS[name].act(flags.id, **person_of(flags))
        told = {"deleted": flags.id} if row is None else _shown(row)
        output.say(WEBHOOK_VERBS[name].told(flags.id), told)

    return act


@subcommand("rotate", WEBHOOK_VERBS["rotate"].help, ID, *PERSON, example="webhooks rotate 3")
def rotate(flags: Namespace, output: Output) -> None:
    _tell_secret(verbs.rotate(flags.id, **person_of(flags)), output, "rotated")


@subcommand("test", WEBHOOK_VERBS["test"].help, ID, *PERSON, example="webhooks test 3")
def test(flags: Namespace, output: Output) -> None:
    delivery = verbs.test(flags.id, **person_of(flags))
    text = f"Delivery {delivery} is enqueued. See manage.py taskqueue webhooks deliveries"
    output.say(f"{text} {flags.id}.", {"delivery": str(delivery)})


@subcommand(
    "deliveries",
    "the newest deliveries of an endpoint, and what became of each",
    ID,
    argument("--status", choices=[each.value for each in DeliveryStatus], help="only those"),
    argument("--limit", type=whole_number(MOST_DELIVERIES), default=50, metavar="N"),
    example="webhooks deliveries 3 --status failed",
)
def deliveries(flags: Namespace, output: Output) -> None:
    rows = delivery_rows(verbs.get(flags.id))
    if flags.status:
        rows = rows.filter(status=flags.status)
    output.models(shown_deliveries(rows.order_by("-id")[: flags.limit]), DELIVERIES)


@subcommand(
    "redeliver",
    WEBHOOK_VERBS["redeliver"].help,
    argument("ids", nargs="+", metavar="ID", help="of a delivery"),
    *PERSON,
)
def redeliver(flags: Namespace, output: Output) -> None:
    def attempt(text: str) -> dict[str, Any]:
        verbs.redeliver(text, **person_of(flags))
        return {}

    def tell(lines: list[dict[str, Any]]) -> None:
        text = (f"{line['id']}  redeliver: {line.get('error') or 'done'}" for line in lines)
        output.say(text, {"verb": "redeliver", "deliveries": lines})

    for_each(flags.ids, attempt, output, key="id", tell=tell)


@subcommand(
    "replay",
    WEBHOOK_VERBS["replay"].help,
    ID,
    argument(
        "--since", type=past, required=True, metavar="TIME",
        help=f"the time from which events are sent, {PAST}",
    ),
    *PERSON,
    example="webhooks replay 3 --since 2h",
)  # fmt: skip
def replay(flags: Namespace, output: Output) -> None:
    operation = verbs.replay(flags.id, since=flags.since, **person_of(flags))
    text = f"{WEBHOOK_VERBS['replay'].told(flags.id)} Operation {operation.id}"
    output.say(text, json_form(shown_operation(operation, EVERYTHING)))


def _given(flags: Namespace) -> dict[str, Any]:
    """Return the fields of an endpoint that the flags set."""
    values = {column: getattr(flags, flag) for flag, column in FIELDS.items()}
    values["description"] = flags.description
    return {name: value for name, value in values.items() if value is not None}


def _shown(row: Endpoint) -> ShownEndpoint:
    (shown,) = shown_endpoints([row])
    return shown


def _tell_secret(made: verbs.Secret, output: Output, done: str) -> None:
    text = (
        f"Endpoint {made.endpoint.pk} {done}. Its secret is shown this once:",
        made.secret,
    )
    output.say(text, {**json_form(_shown(made.endpoint)), "secret": made.secret})


webhooks = Subcommand(
    name="webhooks",
    help="view, create and change endpoints of webhooks, and send events to them again",
    arguments=[
        actions_of(
            listed, show, create, edit, _simple("enable"), _simple("disable"), rotate, test,
            deliveries, redeliver, replay, _simple("delete"),
        )
    ],
    run=listed.run,
)  # fmt: skip
