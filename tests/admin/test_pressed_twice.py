"""Buttons and forms whose objects have no own id act once for each page that was shown."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.test import Client

from taskqueue import webhooks
from taskqueue.core.uuid7 import uuid7
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import AlertRule, Audit, Delivery, Endpoint, Schedule, Task
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import filled, messages_of, simple_schedule
from tests.admin.test_admin import read, url
from tests.alerts.steps import make_rule
from tests.engine.steps import run_at_once

pytestmark = pytest.mark.django_db
TOLD = "was already done"
HOOK = "https://a.example/hook"


def once_of(client: Client, page: str) -> str:
    """The hidden field of a page."""
    found = re.search(r'name="once" value="([^"]+)"', read(client, page))
    assert found is not None, page
    return found[1]


def new_endpoint() -> Endpoint:
    return webhooks.create(HOOK).endpoint


def test_a_schedule_that_is_saved_twice_is_created_once(log_in_as: LogIn) -> None:
    client, page = log_in_as("superuser"), url("schedule", "add")
    given = filled(name="daily", once=once_of(client, page))
    first = client.post(page, given)
    made = Schedule.objects.get()
    assert first["Location"] == url("schedule", "change", made.pk)
    assert TOLD in messages_of(client, page, given)
    assert client.post(page, given)["Location"] == first["Location"]
    other = client.post(page, {**given, "once": once_of(client, page)})
    assert "name" in other.context["form"].errors
    assert Schedule.objects.count() == Audit.objects.count() == 1


def test_a_copy_that_is_saved_twice_is_made_once(log_in_as: LogIn) -> None:
    client, old = log_in_as("superuser"), simple_schedule("old")
    page = f"{url('schedule', 'add')}?copy={old.pk}"
    given = filled(name="new", once=once_of(client, page))
    made = [client.post(page, given)["Location"] for _ in range(2)]
    assert made == [url("schedule", "change", Schedule.objects.get(name="new").pk)] * 2


def test_a_refused_form_can_be_saved_from_the_same_page(log_in_as: LogIn) -> None:
    client, page = log_in_as("superuser"), url("schedule", "add")
    simple_schedule("taken")
    given = filled(name="taken", once=once_of(client, page))
    assert client.post(page, given).context["form"].errors
    client.post(page, {**given, "name": "free"})
    assert Schedule.objects.filter(name="free").exists()


def test_a_form_that_is_sent_again_with_other_values_makes_another(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page = url("schedule", "add")
    given = filled(name="daily", once=once_of(client, page))
    client.post(page, given)
    assert TOLD not in messages_of(client, page, {**given, "name": "weekly"})
    again = client.post(page, {**given, "reason": "another time"})
    assert "name" in again.context["form"].errors
    assert set(Schedule.objects.values_list("name", flat=True)) == {"daily", "weekly"}

    page = url("endpoint", "add")
    given = {"url": HOOK, "once": once_of(client, page)}
    for more in ({}, {"kinds": "task.failed"}):
        client.post(page, {**given, **more})
    assert sorted(Endpoint.objects.values_list("kinds", flat=True)) == [[], ["task.failed"]]

    page = url("alertrule", "new")
    given = {"name": "a", "kind": "worker_trouble", "scope": "all", "enabled": "on",
             "mail": "ops@example.org", "once": once_of(client, page)}  # fmt: skip
    for name in ("a", "b"):
        client.post(page, {**given, "name": name})
    assert set(AlertRule.objects.values_list("name", flat=True)) == {"a", "b"}


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_the_same_time_create_one_schedule(log_in_as: LogIn) -> None:
    client, page = log_in_as("superuser"), url("schedule", "add")
    given, answers = filled(name="daily", once=once_of(client, page)), list[str]()

    def press() -> None:
        own = Client()
        own.cookies = client.cookies
        answers.append(own.post(page, given)["Location"])

    run_at_once([press, press])
    assert answers == [url("schedule", "change", Schedule.objects.get().pk)] * 2


def test_an_alert_rule_that_is_saved_twice_is_made_once(log_in_as: LogIn) -> None:
    client, page = log_in_as("superuser"), url("alertrule", "new")
    given = {"name": "disks", "kind": "worker_trouble", "scope": "all", "enabled": "on",
             "mail": "ops@example.org", "once": once_of(client, page)}  # fmt: skip
    made = [client.post(page, given)["Location"] for _ in range(2)]
    assert made == [url("alertrule", "change", AlertRule.objects.get().pk)] * 2


def test_the_channels_of_an_alert_rule_are_tested_once_for_each_page(log_in_as: LogIn) -> None:
    client, rule = log_in_as("superuser"), make_rule("disks")
    page, address = url("alertrule", "change", rule.pk), url("alertrule", "act", rule.pk)
    given = {"verb": "test", "once": once_of(client, page)}
    client.post(address, given)
    assert TOLD in messages_of(client, address, given)
    assert Task.objects.count() == 1
    client.post(address, {**given, "once": once_of(client, page)})
    assert Task.objects.count() == 2


@pytest.mark.parametrize("verb", ["test", "replay"])
def test_an_endpoint_is_tested_once_for_each_page(verb: str, log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    page, address = url("endpoint", "change", row.pk), url("endpoint", "act", row.pk)
    given = {"verb": verb, "hours": "1", "once": once_of(client, page)}
    entries = Audit.objects.filter(noun="webhook", verb=verb)
    client.post(address, given)
    assert TOLD in messages_of(client, address, given)
    assert entries.count() == 1
    client.post(address, {**given, "once": once_of(client, page)})
    assert entries.count() == 2


def test_a_delivery_is_sent_again_once_for_each_page(log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    webhooks.test(row.pk)
    Delivery.objects.update(status="failed")
    page, address = url("endpoint", "change", row.pk), url("endpoint", "redeliver", row.pk)
    given = {"delivery": str(Delivery.objects.get().pk), "once": once_of(client, page)}
    client.post(address, given)
    Delivery.objects.update(status="failed")
    assert TOLD in messages_of(client, address, given)
    assert Task.objects.count() == 2
    client.post(address, {**given, "once": once_of(client, page)})
    assert Task.objects.count() == 3


def test_an_endpoint_that_is_saved_twice_is_made_once_and_shows_its_secret_again(
    log_in_as: LogIn,
) -> None:
    client, page = log_in_as("superuser"), url("endpoint", "add")
    given = {"url": HOOK, "once": once_of(client, page)}
    answers = [client.post(page, given).content.decode() for _ in range(2)]
    row = Endpoint.objects.get()
    assert all(f"<code>{row.secret}</code>" in answer for answer in answers)
    later = row.changed_at.replace(year=row.changed_at.year - 1)
    Endpoint.objects.update(changed_at=later)
    assert client.post(page, given)["Location"] == url("endpoint", "change", row.pk)


def test_a_secret_is_rotated_once_for_each_page(log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    page, address = url("endpoint", "change", row.pk), url("endpoint", "act", row.pk)
    given = {"verb": "rotate", "once": once_of(client, page)}
    answers = [client.post(address, given).content.decode() for _ in range(2)]
    old, row = row.secret, Endpoint.objects.get()
    assert row.previous_secret == old != row.secret
    assert all(f"<code>{row.secret}</code>" in answer for answer in answers)


@pytest.mark.parametrize("verb", ["rotate", "edit"])
def test_a_second_press_shows_no_secret_once_the_endpoint_has_been_changed(
    verb: str, log_in_as: LogIn
) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    page, address = url("endpoint", "change", row.pk), url("endpoint", "act", row.pk)
    given = {"verb": "rotate", "once": once_of(client, page)}
    client.post(address, given)
    if verb == "rotate":
        webhooks.rotate(row.pk, by="somebody else")
    else:
        webhooks.edit(row.pk, description="new")
    assert client.post(address, given)["Location"] == page


def test_the_id_of_one_page_does_nothing_on_another(log_in_as: LogIn) -> None:
    client, first, second = log_in_as("superuser"), new_endpoint(), new_endpoint()
    given = {"verb": "test", "once": str(uuid7())}
    client.post(url("endpoint", "act", first.pk), given)
    told = messages_of(client, url("endpoint", "act", second.pk), given)
    assert "This form had expired" in told
    assert Delivery.objects.count() == 1


def test_a_refused_button_can_be_pressed_again(log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    given: dict[str, Any] = {"verb": "test", "once": str(uuid7())}
    address = url("endpoint", "act", row.pk)
    refused = TransitionRefused("not now")
    with patch("taskqueue.engine.webhooks.deliveries.insert_deliveries", side_effect=refused):
        assert "not now" in messages_of(client, address, given)
    client.post(address, given)
    assert Delivery.objects.count() == 1


def test_a_page_that_sends_no_id_acts_as_before(log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    for _ in range(2):
        client.post(url("endpoint", "act", row.pk), {"verb": "test"})
    assert Delivery.objects.count() == 2


def test_another_user_presses_a_button_of_the_same_id(log_in_as: LogIn) -> None:
    client, row = log_in_as("superuser"), new_endpoint()
    given = {"verb": "test", "once": str(uuid7())}
    client.post(url("endpoint", "act", row.pk), given)
    other = Client()
    other.force_login(User.objects.create_superuser("other"))
    other.post(url("endpoint", "act", row.pk), given)
    assert Delivery.objects.count() == 2
