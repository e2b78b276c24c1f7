"""Webhooks in REST, the admin and the CLI: secrets are shown once, and nothing to others."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client

from taskqueue import webhooks
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import Message
from taskqueue.exceptions import EndpointDoesNotExist, InvalidWebhook
from taskqueue.models import (
    Audit,
    Delivery,
    Endpoint,
    Event,
    IdempotencyKey,
    Operation,
    Subscription,
)
from taskqueue.testing import run_due
from tests.sample.tasks import add
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db
URL = "https://example.com/in?token=mysteriousToken"
API = "/api/v1/webhooks/"


def client_with(*permissions: str) -> Client:
    """A client of somebody with these permissions."""
    user = User.objects.create_user("-".join(permissions) or "nobody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def ask(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    return client.generic(
        method, f"{API}{path}", json.dumps(body or {}), "application/json", headers=headers
    )


def cli(*arguments: Any) -> str:
    out = StringIO()
    call_command("taskqueue", "webhooks", *map(str, arguments), stdout=out)
    return out.getvalue()


def delivered(endpoint: Endpoint, answer: str = "") -> Delivery:
    """A delivery that was answered."""
    message = Message(kind="task.failed", timestamp="2026-11-25T00:00:00Z", data={}, seq=1)
    (id,) = insert_deliveries(project_connection(), [(endpoint.pk, message)])
    Delivery.objects.filter(id=id).update(status="failed", answer=answer, answer_status=500)
    return Delivery.objects.get(id=id)


# REST


def test_rest_shows_a_secret_once() -> None:
    client = client_with("manage_webhooks")
    made = ask(client, "POST", "", {"url": URL}, idempotency_key="one")
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    again = ask(client, "POST", "", {"url": URL}, idempotency_key="one")
    assert (again.status_code, again.json()["secret"]) == (201, None)
    assert Endpoint.objects.count() == 1
    path = f"{made.json()['id']}/"
    rotated = ask(client, "POST", f"{path}rotate/").json()["secret"]
    assert rotated != secret
    seen = [
        ask(client, "GET", ""),
        ask(client, "GET", path),
        ask(client, "PATCH", path, {"description": "x"}),
        ask(client, "POST", f"{path}test/"),
        ask(client, "GET", f"{path}deliveries/"),
        ask(client, "POST", f"{path}disable/"),
    ]
    for answer in seen:
        assert answer.status_code in (200, 202), answer.content
        assert secret not in answer.content.decode()
        assert rotated not in answer.content.decode()
    for model in (IdempotencyKey, Audit):
        text = str(list(model.objects.values()))
        assert secret not in text
        assert "mysteriousToken" not in str(list(Audit.objects.values()))


def test_to_send_errors_somewhere_takes_the_permission_to_view_arguments() -> None:
    plain, both = client_with("manage_webhooks"), client_with("manage_webhooks", "view_arguments")
    body = {"url": URL, "include": ["error"]}
    assert ask(plain, "POST", "", body).status_code == 403
    path = f"{ask(both, 'POST', '', body).json()['id']}/"
    assert ask(plain, "PATCH", path, {"url": "https://example.org/"}).status_code == 403
    assert ask(plain, "PATCH", path, {"description": "x"}).status_code == 200
    assert ask(plain, "PATCH", path, {"include": []}).status_code == 200
    assert ask(plain, "PATCH", path, {"include": ["error"]}).status_code == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"url": "http://example.com/"}, "https://"),
        ({"url": "https://127.0.0.1/"}, "not public"),
        ({"url": "https://0x7f.1/"}, "four decimal"),
        ({"url": "https://a:b@example.com/"}, "user name"),
        ({"url": URL, "kinds": ["task.faild"]}, "Did you mean"),
        ({"url": URL, "names": ["[a]"]}, "pattern"),
        ({"url": URL, "include": ["arguments"]}, "include"),
        ({"url": URL, "secret": "mine"}, "Unknown field"),
        ({"url": "x" * 3000}, "url"),
    ],
)
def test_rest_refuses_what_no_endpoint_can_be(body: Any, said: str) -> None:
    answer = ask(client_with("manage_webhooks", "view_arguments"), "POST", "", body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert not Endpoint.objects.exists()


def test_a_delivery_belongs_to_one_endpoint() -> None:
    client = client_with("manage_webhooks")
    one, other = webhooks.create(URL).endpoint, webhooks.create(URL).endpoint
    delivery = delivered(one)
    path = f"deliveries/{delivery.id}/redeliver/"
    assert ask(client, "POST", f"{other.pk}/{path}").status_code == 404
    assert ask(client, "POST", f"{one.pk}/{path}").status_code == 202
    assert ask(client, "POST", f"{one.pk}/{path}").status_code == 409
    assert ask(client, "GET", "999/deliveries/").status_code == 404


def test_an_endpoint_that_others_have_changed_is_not_changed() -> None:
    client = client_with("manage_webhooks")
    path = f"{webhooks.create(URL).endpoint.pk}/"
    etag = ask(client, "GET", path)["ETag"]
    assert ask(client, "PATCH", path, {"description": "x"}, if_match=etag).status_code == 200
    assert ask(client, "PATCH", path, {"description": "y"}, if_match=etag).status_code == 412


# The admin


def test_the_admin_shows_a_secret_once_and_in_no_message() -> None:
    client = client_with("manage_webhooks")
    page = client.post("/admin/taskqueue/endpoint/add/", {"url": URL, "kinds": "task.failed"})
    endpoint = Endpoint.objects.get()
    assert endpoint.secret in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert endpoint.kinds == ["task.failed"]
    for path in ("", f"{endpoint.pk}/change/", f"{endpoint.pk}/edit/", f"{endpoint.pk}/history/"):
        shown = client.get(f"/admin/taskqueue/endpoint/{path}")
        assert shown.status_code == 200
        assert endpoint.secret not in shown.content.decode()


def test_the_answer_of_a_receiver_is_escaped_in_the_admin() -> None:
    endpoint = webhooks.create(URL).endpoint
    delivered(endpoint, answer="<script>alert(1)</script>")
    page = client_with("manage_webhooks").get(f"/admin/taskqueue/endpoint/{endpoint.pk}/change/")
    assert "<script>alert" not in page.content.decode()
    assert "&lt;script&gt;alert" in page.content.decode()


def test_operators_see_no_endpoint() -> None:
    endpoint = webhooks.create(URL).endpoint
    call_command("taskqueue", "roles", stdout=StringIO())
    user = User.objects.create_user("operator", is_staff=True)
    user.groups.add(Group.objects.get(name="taskqueue operator"))
    client = Client()
    client.force_login(user)
    assert client.get("/admin/taskqueue/endpoint/").status_code == 403
    assert client.get(f"/admin/taskqueue/endpoint/{endpoint.pk}/change/").status_code == 403
    assert ask(client, "GET", "").status_code == 403
    assert "mysteriousToken" not in client.get("/admin/taskqueue/audit/").content.decode()


# The CLI, and replay


def test_the_cli_manages_endpoints() -> None:
    said = cli("create", URL, "--kind", "task.failed", "--by", "ada")
    endpoint = Endpoint.objects.get()
    assert endpoint.secret in said
    assert endpoint.created_by == "ada"
    assert endpoint.secret not in cli("list") + cli("show", endpoint.pk)
    cli("edit", endpoint.pk, "--kind", "task.lost")
    cli("disable", endpoint.pk)
    assert "disabled" in cli()
    with pytest.raises(CommandError, match="is disabled"):
        cli("disable", endpoint.pk)
    cli("enable", endpoint.pk)
    cli("test", endpoint.pk)
    assert "webhook.test" in cli("deliveries", endpoint.pk)
    old = endpoint.secret
    assert old not in cli("rotate", endpoint.pk)
    cli("delete", endpoint.pk)
    assert not Endpoint.objects.exists()
    with pytest.raises(CommandError, match="no endpoint"):
        cli("show", endpoint.pk)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", URL, "--include", "foo"), r"invalid choice: 'foo' \(choose from '?error'?\)"),
        (("replay", "3", "--since", "xx"), "'xx' is neither a time such as .* nor a duration"),
    ],
)
def test_the_cli_names_values_that_cannot_be(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        cli(*arguments)


def test_replay_sends_what_was_missed_and_what_was_sent_again(
    receiver: Receiver, settings: Any
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    url = f"http://127.0.0.1:{receiver.port}/"
    endpoint = webhooks.create(url, kinds=["task.enqueued"], names=[add.name]).endpoint
    add.enqueue(1, 1)
    pump(project_connection())
    webhooks.disable(endpoint.pk)
    add.enqueue(1, 2)
    pump(project_connection())
    webhooks.enable(endpoint.pk)
    cli("replay", endpoint.pk, "--since", "1h", "--by", "ada")
    run_due()
    run_due()
    operation = Operation.objects.get()
    assert (operation.status, operation.matched, operation.done) == ("finished", 2, 2)
    sent = [json.loads(each.body)["data"]["seq"] for each in receiver.received]
    events = Event.objects.filter(kind="task.enqueued", name=add.name)
    assert sorted(sent) == sorted(events.values_list("seq", flat=True))
    cli("replay", endpoint.pk, "--since", "1h")
    run_due()
    run_due()
    ids = [each.headers["webhook-id"] for each in receiver.received]
    assert len(ids) == 4
    assert len(set(ids)) == 2


def test_replay_leaves_out_what_became_of_tasks_of_handlers() -> None:
    endpoint = webhooks.create(URL, kinds=["task.enqueued"]).endpoint
    add.enqueue(1, 1)
    pump(project_connection())
    Subscription.objects.create(subscriber="handler", subject=add.name, kinds=[])
    cli("replay", endpoint.pk, "--since", "1h")
    before = Delivery.objects.count()
    run_due()
    operation = Operation.objects.get()
    assert (operation.status, operation.matched, Delivery.objects.count()) == (
        "finished", 0, before,
    )  # fmt: skip


def test_a_secret_does_not_stand_in_its_text() -> None:
    made = webhooks.create(URL)
    assert made.secret.startswith("whsec_")
    assert made.secret not in repr(made) + str(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kinds": [["a"]]}, r"kinds must be texts of 1 to 255 characters, not \['a'\]"),
        ({"kinds": ["task.*", 1]}, "kinds must be texts of 1 to 255 characters, not 1"),
        ({"names": [10**5000]}, "names must be texts .*, not this int"),
        ({"kinds": ["task"]}, r"Did you mean 'task\.\*'"),
    ],
    ids=["list", "number", "large", "noun"],
)
def test_the_entry_that_cannot_be_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidWebhook, match=said):
        webhooks.create(URL, **changes)


@pytest.mark.parametrize(
    "endpoint", [77, "77", "x", 10**5000, "9" * 5000], ids=["number", "id", "word", "large", "text"]
)
def test_an_unknown_endpoint_is_refused_with_the_command_that_lists_endpoints(
    endpoint: Any,
) -> None:
    with pytest.raises(EndpointDoesNotExist, match="taskqueue webhooks list"):
        webhooks.get(endpoint)
