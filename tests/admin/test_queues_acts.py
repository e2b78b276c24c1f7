"""Queues are paused and resumed by name, by those who may, by POST alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from taskqueue import control
from taskqueue.admin.links import Links, NameConverter
from taskqueue.models import Audit, Pause, Queue
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.schedule_rows import messages_of
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
LINKS = Links("admin")
LIST = "/admin/taskqueue/queue/"


def press(client: Client, name: str, verb: str, **more: str) -> str:
    """Press a button of a queue; what is told."""
    return messages_of(client, LINKS.url("queue_act", name), {"verb": verb, **more})


def state() -> Any:
    """All that an act could change."""
    return list(Queue.objects.values()), Audit.objects.count(), LogEntry.objects.count()


@pytest.mark.parametrize(
    "name", ["mail", "a/b", '"x"', "50%", "a_b", "_2F", "..", "a?b#c", "队列", " x ", "a\nb"]
)
def test_a_queue_s_name_survives_its_address(name: str) -> None:
    converter = NameConverter()
    assert converter.to_python(converter.to_url(name)) == name
    assert converter.to_python(quote(name)) == name
    assert "/../" not in LINKS.url("queue_act", name)
    assert LINKS.url("queue_act", name).endswith("/act/")


def test_a_queue_that_only_has_tasks_can_be_paused_and_resumed(log_in_as: LogIn) -> None:
    noop.using(queue_name="mail.eu:1").enqueue()
    client = log_in_as("viewer", "view_queue", "control_queues")
    told = press(client, "mail.eu:1", "pause", reason="a new release")
    assert "mail.eu:1 paused" in told
    queue = Queue.objects.get(name="mail.eu:1")
    assert (queue.paused_by, queue.pause_reason) == ("user", "a new release")
    assert queue.paused_at is not None
    assert queue.paused_until is None
    assert "resumed" in press(client, "mail.eu:1", "resume")
    queue.refresh_from_db()
    assert queue.paused_at is None
    assert [line.verb for line in Audit.objects.order_by("id")] == ["pause", "resume"]
    assert LogEntry.objects.count() == 2


def test_a_pause_can_end_by_itself(log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_queue", "control_queues")
    press(client, "mail", "pause", minutes="90")
    queue = Queue.objects.get()
    assert queue.paused_at is not None
    assert queue.paused_until is not None
    assert (queue.paused_until - queue.paused_at).total_seconds() == 90 * 60


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mail", {"verb": "resume"}),
        ("mail", {"verb": "drop"}),
        ("mail", {}),
        ("mail", {"verb": "pause", "minutes": "-1"}),
        ("mail", {"verb": "pause", "minutes": "soon"}),
        ("mail", {"verb": "pause", "minutes": "9" * 30}),
        (EVIL, {"verb": "pause"}),
        ("..", {"verb": "resume"}),
        ("a\x00b", {"verb": "resume"}),
    ],
)
def test_a_refused_action_is_reported_and_changes_nothing(
    name: str, given: dict[str, str], log_in_as: LogIn
) -> None:
    client, before = log_in_as("superuser"), state()
    answer = client.post(LINKS.url("queue_act", name), given, follow=True)
    assert answer.status_code == 200
    assert answer.context["messages"]
    assert EVIL not in answer.content.decode()
    assert state() == before


@pytest.mark.parametrize("role", ["anonymous", "user", "staff", "viewer"])
def test_users_who_may_not_control_queues_change_nothing(role: str, log_in_as: LogIn) -> None:
    control.pause("mail")
    before, client = state(), log_in_as(role)
    for verb in ("pause", "resume"):
        address = LINKS.url("queue_act", "mail")
        for answer in (client.post(address, {"verb": verb}), client.get(address)):
            assert answer.status_code == (302 if role in ("anonymous", "user") else 403)
    assert state() == before


def test_a_get_changes_nothing(log_in_as: LogIn) -> None:
    client, before = log_in_as("superuser"), state()
    assert client.get(LINKS.url("queue_act", "mail"), {"verb": "pause"}).status_code == 405
    assert state() == before


def test_a_forged_post_is_refused(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    client.handler.enforce_csrf_checks = True
    before = state()
    assert client.post(LINKS.url("queue_act", "mail"), {"verb": "pause"}).status_code == 403
    assert state() == before


@pytest.mark.parametrize(
    ("named", "leads_to"),
    [
        ("/admin/taskqueue/dashboard/?a=1", "/admin/taskqueue/dashboard/?a=1"),
        ("https://evil.example/", None),
        ("//evil.example/", None),
        ("/\\evil.example/", None),
        ("javascript:alert(1)", None),
        ("", None),
    ],
)
def test_a_button_leads_back_to_pages_of_this_site_only(
    named: str, leads_to: str | None, log_in_as: LogIn
) -> None:
    answer = log_in_as("superuser").post(
        LINKS.url("queue_act", "mail"), {"verb": "pause", "next": named}
    )
    assert answer.status_code == 302
    otherwise = f"{reverse('admin:taskqueue_queue_named')}?name=mail"
    assert answer["Location"] == (leads_to or otherwise)


def press_for_all(client: Client, verb: str, **more: str) -> str:
    """Press a button for a definition, or for everything."""
    return messages_of(client, LINKS.url("queue_pauses"), {"verb": verb, **more})


def test_a_definition_and_everything_are_paused_and_resumed(log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_queue", "control_queues")
    definition = {"definition": "shop.export"}
    assert "shop.export paused" in press_for_all(
        client, "pause_definition", reason=EVIL, minutes="90", **definition
    )
    assert "Everything is paused" in press_for_all(client, "pause_all", reason="an incident")
    rows = {row.name: row for row in Pause.objects.all()}
    assert (rows["shop.export"].paused_by, rows["shop.export"].pause_reason) == ("user", EVIL)
    assert rows["shop.export"].paused_until is not None
    assert rows[""].paused_until is None
    page = client.get(LIST).content.decode()
    assert "an incident" in page
    assert 'value="resume_all"' in page
    assert 'value="resume_definition"' in page
    assert "resumed" in press_for_all(client, "resume_definition", **definition)
    assert "is not paused" in press_for_all(client, "resume_definition", **definition)
    assert "Everything is resumed" in press_for_all(client, "resume_all")
    assert not Pause.objects.exists()
    assert Audit.objects.count() == 4


def test_an_unknown_name_is_reported(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    told = press_for_all(client, "pause_definition", definition=f"{noop.name}p")
    assert f"Did you mean {noop.name!r}?" in told
    assert "Did you mean" not in press_for_all(client, "pause_definition", definition=noop.name)
    told = messages_of(client, LINKS.url("queue_act", "defaul"), {"verb": "pause"})
    assert "Did you mean 'default'?" in told
    told = messages_of(client, LINKS.url("queue_act", "default"), {"verb": "pause"})
    assert "Did you mean" not in told


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("pause_definition", {"definition": ""}),
        ("pause_definition", {"definition": "two words"}),
        ("pause_all", {"minutes": "0"}),
        ("pause_all", {"minutes": "x"}),
        ("stop_all", {}),
    ],
)
def test_an_impossible_pause_is_reported(verb: str, more: dict[str, str], log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    assert press_for_all(client, verb, **more)
    assert not Pause.objects.exists()
    assert not Audit.objects.exists()


def test_the_dashboard_says_that_everything_is_paused(log_in_as: LogIn) -> None:
    control.pause_all(by="ada", reason="an incident")
    page = log_in_as("superuser").get("/admin/taskqueue/dashboard/").content.decode()
    assert "Everything is paused (ada, an incident): no worker claims any task." in page


def test_an_unknown_name_is_reported_in_the_reader_s_language(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    with override("zh-hans"):
        told = press_for_all(client, "pause_definition", definition=f"{noop.name}p")
    assert f"您是不是要找 {noop.name!r}" in told


@pytest.mark.parametrize("address", [LINKS.url("queue_act", "mail"), f"{LIST}pauses/"])
def test_a_mistake_is_reported_by_the_label_of_its_field(address: str, log_in_as: LogIn) -> None:
    given = {"verb": "pause_all" if address.endswith("pauses/") else "pause", "minutes": "-4"}
    client = log_in_as("superuser")
    client.cookies["django_language"] = "zh-hans"
    with override("zh-hans"):
        assert "分钟\uff1a" in messages_of(client, address, given)
