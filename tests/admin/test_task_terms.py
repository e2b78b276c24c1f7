"""The form for a task's options loses nobody's change, however long it was open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from taskqueue import control
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read
from tests.admin.test_task_acts import state
from tests.admin.test_task_acts_forms import edit_url
from tests.engine.steps import task_of
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def fields_of(page: Any) -> dict[str, str]:
    """What a browser would send of the form as it stands."""
    form = page.context["form"]
    span = form.fields["timeout"].widget
    number, unit = (
        form["timeout"].value()
        if isinstance(form["timeout"].value(), list)
        else span.decompress(form["timeout"].value())
    )
    names = ("priority", "queue_name", "max_attempts", "shown")
    sent = {name: str(form[name].value()) for name in names}
    return {**sent, "timeout_0": "" if number is None else str(number), "timeout_1": str(unit)}


def opened(client: Client, task: Any) -> dict[str, str]:
    """The form as somebody opens it."""
    return fields_of(client.get(edit_url(task, "update")))


def send(client: Client, task: Any, form: dict[str, str], **changed: str) -> Any:
    """Send it with what they change."""
    return client.post(edit_url(task, "update"), {**form, **changed})


def test_saving_an_edit_keeps_what_others_changed_meanwhile(log_in_as: LogIn) -> None:
    task, client = noop.using(timeout=9).enqueue(), log_in_as("superuser")
    form = opened(client, task)
    control.update(task.id, {"priority": 50, "timeout": timedelta(seconds=120)}, by="ann")
    assert send(client, task, form, queue_name="mail").status_code == 302
    row = task_of(task)
    assert (row.priority, row.queue_name, row.options["timeout"]) == (50, "mail", 120)
    assert Audit.objects.latest("id").detail == "queue_name: default to mail"


def test_of_a_term_that_both_change_nothing_is_changed_before_it_was_seen(
    log_in_as: LogIn,
) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    form = opened(client, task)
    control.update(task.id, {"priority": 50, "max_attempts": 8}, by="ann")
    before = state()
    answer = send(client, task, form, priority="7", queue_name="mail")
    assert answer.status_code == 200
    assert "Somebody else has changed this meanwhile, to 50." in answer.content.decode()
    assert state() == before
    again = fields_of(answer)
    assert (again["priority"], again["queue_name"], again["max_attempts"]) == ("7", "mail", "8")
    assert send(client, task, again).status_code == 302
    row = task_of(task)
    assert (row.priority, row.queue_name, row.max_attempts) == (7, "mail", 8)


def test_a_time_limit_that_both_change_is_told_too(log_in_as: LogIn) -> None:
    task, client = noop.using(timeout=9).enqueue(), log_in_as("superuser")
    form = opened(client, task)
    control.update(task.id, {"timeout": None}, by="ann")
    before = state()
    answer = send(client, task, form, timeout_0="30")
    assert "changed this meanwhile, to none." in answer.content.decode()
    assert state() == before
    assert send(client, task, fields_of(answer)).status_code == 302
    assert task_of(task).options["timeout"] == 30


def test_to_want_what_somebody_else_has_done_is_no_conflict(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    form = opened(client, task)
    control.update(task.id, {"priority": 50}, by="ann")
    assert send(client, task, form, priority="50", queue_name="mail").status_code == 302
    assert (task_of(task).priority, task_of(task).queue_name) == (50, "mail")


def test_a_change_that_comes_as_the_form_is_read_is_not_replaced(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    form = opened(client, task)
    act_by = TaskVerb.act_by

    def late(*args: Any, **named: Any) -> Any:
        control.update(task.id, {"priority": 50}, by="ann")
        return act_by(*args, **named)

    monkeypatch.setattr(TaskVerb, "act_by", late)
    answer = client.post(edit_url(task, "update"), {**form, "priority": "7"}, follow=True)
    assert "has changed since you saw it: priority" in answer.content.decode()
    assert task_of(task).priority == 50


def test_the_verb_refuses_where_what_was_seen_is_no_longer_so() -> None:
    task = noop.enqueue()
    with pytest.raises(TransitionRefused, match="priority"):
        control.update(task.id, {"priority": 7}, seen={"priority": 3})
    assert task_of(task).priority == 0
    assert control.update(task.id, {"priority": 7}, seen={"priority": 0})


SPOILT = ["x", "[]", "{}", "1", '{"priority": 0}', "[" * 100_000, "\x00",
          '{"priority": 0, "queue_name": "", "max_attempts": 1, "timeout": 1e300}',
          '{"priority": 0, "queue_name": "", "max_attempts": 1, "timeout": []}']  # fmt: skip


@pytest.mark.parametrize("shown", SPOILT)
def test_a_spoilt_page_changes_nothing(shown: str, log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    form, before = opened(client, task), state()
    answer = send(client, task, form, shown=shown, priority="7")
    assert answer.status_code == 200
    assert "The form is incomplete" in answer.content.decode()
    assert state() == before


def test_the_edit_form_carries_the_shown_values_in_a_hidden_field(log_in_as: LogIn) -> None:
    page = read(log_in_as("superuser"), edit_url(noop.enqueue(), "update"))
    assert 'type="hidden" name="shown"' in page
    assert ">Shown<" not in page
