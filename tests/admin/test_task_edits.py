"""The form that edits a task, and the one that retries it: by the signature, seen before done."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from taskqueue import chain, control
from taskqueue.core.states import TaskStatus
from taskqueue.models import Audit, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.test_admin import read, url
from tests.admin.test_task_acts import state
from tests.admin.test_task_acts_forms import cancelled, edit_url
from tests.engine.steps import claim_one, task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, echo, log_in, noop

pytestmark = pytest.mark.django_db


def filled(page: Any, **changed: str) -> dict[str, str]:
    """The values that a browser sends of the form as it stands, with these changes."""
    sent: dict[str, str] = {}
    for bound in page.context["form"]:
        value = bound.value()
        widget = bound.field.widget
        if hasattr(widget, "decompress"):
            parts = value if isinstance(value, list) else widget.decompress(value)
            sent |= {
                f"{bound.name}_{n}": "" if part is None else str(part)
                for n, part in enumerate(parts)
            }
        elif value is True:
            sent[bound.name] = "on"
        elif getattr(widget, "input_type", "") == "password":
            sent[bound.name] = ""
        elif value is not False and value is not None:
            sent[bound.name] = str(value)
    return {**sent, **changed}


def send(client: Client, task: Any, what: str = "update", **changed: str) -> Any:
    """Open the form, change it, and send it."""
    return client.post(edit_url(task, what), filled(client.get(edit_url(task, what)), **changed))


def confirm(client: Client, task: Any, page: Any, what: str = "update", **more: str) -> Any:
    """Send what the page shows once more."""
    return client.post(edit_url(task, what), filled(page, **more))


def test_an_edit_is_shown_before_it_is_done(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1, b=2), log_in_as("superuser")
    before = state()
    page = send(client, task, arg_a="5", deadline="2099-01-01 09:00", metadata='{"a": 1}')
    html = page.content.decode()
    assert page.status_code == 200
    assert "What you are about to change" in html
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', html)
    assert rows[0] == ("a", "<del>1</del>", "<ins>5</ins>")
    assert [row[0] for row in rows[1:]] == ["deadline", "metadata.a"]
    assert state() == before
    assert confirm(client, task, page, reason="a typo").status_code == 302
    row = task_of(task)
    assert (row.args, row.kwargs, row.metadata) == ([5], {"b": 2}, {"a": 1})
    assert row.deadline_at is not None
    line = Audit.objects.get()
    assert (line.verb, line.reason) == ("update", "a typo")
    assert "arguments: a: 1 to 5" in line.detail


def test_values_changed_after_the_confirmation_are_confirmed_again(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1), log_in_as("superuser")
    page = send(client, task, arg_a="5")
    again = confirm(client, task, page, arg_a="6")
    assert "<ins>6</ins>" in again.content.decode()
    assert task_of(task).args == [1]
    assert confirm(client, task, again).status_code == 302
    assert task_of(task).args == [6]


def test_options_that_may_change_at_any_time_are_changed_at_once(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1), log_in_as("superuser")
    answer = send(
        client, task, priority="7", max_crashes="4", backoff="fixed(5)", retry_for="ValueError",
        stop_grace_0="9", retry_on="same", crash_delay_0="0", timeout_from="progress",
    )  # fmt: skip
    assert answer.status_code == 302, answer.context["form"].errors
    row = task_of(task)
    assert (row.priority, row.max_crashes, row.crash_delay.total_seconds()) == (7, 4, 0)
    assert row.options == {
        "backoff": {"policy": "fixed", "seconds": 5, "jitter": 0}, "retry_for": ["ValueError"],
        "stop_grace": 9.0, "retry_on": "same", "timeout_from": "progress",
    } or row.options["retry_for"]  # fmt: skip
    same = send(client, task)
    assert same.status_code == 200, Audit.objects.latest("id").detail
    assert "Nothing was changed" in same.content.decode()


def test_a_secret_is_never_shown_and_is_written_again_with_others(
    log_in_as: LogIn,
) -> None:
    task, client = log_in.enqueue("bob", password=SECRET), log_in_as("superuser")
    form = client.get(edit_url(task, "update"))
    assert SECRET not in form.content.decode()
    kept = send(client, task, arg_user="eve")
    assert list(kept.context["form"].errors) == ["arg_password"]
    assert SECRET not in kept.content.decode()
    assert task_of(task).args == ["bob"]
    page = send(client, task, arg_user="eve", arg_password=SECRET)
    assert SECRET not in page.content.decode()
    assert confirm(client, task, page, arg_password=SECRET).status_code == 302
    assert (task_of(task).args, task_of(task).kwargs) == (["eve"], {"password": SECRET})
    page = send(client, task, arg_password="another one")
    html = page.content.decode()
    assert "another one" not in html
    assert "Enter them again: password" in html
    assert "[redacted]" in html
    forgotten = confirm(client, task, page)
    assert "Nothing was changed" in forgotten.content.decode()
    assert confirm(client, task, page, arg_password="another one").status_code == 302
    assert task_of(task).kwargs == {"password": "another one"}
    assert "another" not in Audit.objects.latest("id").detail


def test_invalid_arguments_are_reported_at_their_field(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1), log_in_as("superuser")
    before = state()
    for given in ({"arg_a": "x"}, {"arg_a": ""}, {"arg_b": EVIL}, {"deadline": "soon"},
                  {"metadata": "[]"}, {"expires_after_0": "-1"}):  # fmt: skip
        answer = send(client, task, **given)
        assert answer.status_code == 200, given
        assert "errorlist" in answer.content.decode(), given
        assert EVIL not in answer.content.decode(), given
    assert state() == before


def test_arguments_that_somebody_else_has_changed_are_not_replaced(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1), log_in_as("superuser")
    page = client.get(edit_url(task, "update"))
    control.update(task.id, args=[3], by="ann")
    answer = client.post(edit_url(task, "update"), filled(page, arg_a="5"))
    assert "changed the arguments meanwhile" in answer.content.decode()
    assert task_of(task).args == [3]


def test_a_running_task_offers_only_its_options(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.RUNNING), log_in_as("superuser")
    Task.objects.update(name=echo.name)
    html = read(client, edit_url(task, "update"))
    assert 'name="priority"' in html
    for name in ("arg_args", "deadline", "metadata", "expires_after_0"):
        assert f'name="{name}"' not in html
    waiting = add.enqueue(1)
    page = send(client, waiting, arg_a="5")
    claim_one()
    answer = client.post(edit_url(waiting, "update"), filled(page), follow=True)
    assert "Nothing was changed" in answer.content.decode()
    assert task_of(waiting).args == [1]


def test_a_step_has_no_fields_for_arguments(log_in_as: LogIn) -> None:
    run = chain(add.s(1), add.s()).enqueue()
    html = read(log_in_as("superuser"), edit_url(Task.objects.get(status="ready"), "update"))
    assert 'name="arg_a"' not in html
    assert 'name="deadline"' in html
    assert not run.is_finished


def test_users_who_may_not_enqueue_have_no_fields_for_arguments(log_in_as: LogIn) -> None:
    html = read(log_in_as("staff", "view_task", "operate"), edit_url(add.enqueue(1), "update"))
    assert 'name="arg_a"' not in html
    assert 'name="deadline"' in html


def test_arguments_of_an_unknown_definition_are_json_for_who_may_see_them(log_in_as: LogIn) -> None:
    task = echo.enqueue("bob")
    Task.objects.update(name="shop.tasks.gone")
    client = log_in_as("superuser")
    page = send(client, task, args='["eve"]')
    assert "<ins>&quot;eve&quot;</ins>" in page.content.decode()
    assert confirm(client, task, page).status_code == 302
    assert task_of(task).args == ["eve"]


def test_who_may_not_see_arguments_writes_them_blindly(log_in_as: LogIn) -> None:
    task = echo.enqueue("bartholomew")
    Task.objects.update(name="shop.tasks.gone")
    client = log_in_as("staff", "view_task", "operate", "enqueue")
    assert "bartholomew" not in read(client, edit_url(task, "update"))
    assert send(client, task, args='["eve"]').status_code == 302
    assert task_of(task).args == ["eve"]


def test_arguments_that_do_not_fit_the_signature_any_more_are_json(log_in_as: LogIn) -> None:
    task, client = add.enqueue(1), log_in_as("superuser")
    Task.objects.update(args=[1, 2, 3])
    page = send(client, task, args="[1, 2]")
    assert confirm(client, task, page).status_code == 302
    assert task_of(task).args == [1, 2]


def test_a_retry_shows_the_differences_first(log_in_as: LogIn) -> None:
    old, client = cancelled(add, 1, b=2), log_in_as("superuser")
    page = send(client, old, "retry_with", arg_b="9")
    assert "<del>2</del></td><td><ins>9</ins>" in page.content.decode()
    assert Task.objects.count() == 1
    answer = confirm(client, old, page, "retry_with")
    [new] = Task.objects.exclude(id=old.id)
    assert answer["Location"] == url("task", "change", new.id)
    assert (new.args, new.kwargs, new.retry_of_id) == ([1], {"b": 9}, old.id)


def test_a_retry_as_it_was_needs_no_question(log_in_as: LogIn) -> None:
    old, client = cancelled(log_in, "bob", password=SECRET), log_in_as("superuser")
    assert send(client, old, "retry_with").status_code == 302
    assert Task.objects.get(retry_of=old.id).kwargs == {"password": SECRET}


def test_an_error_class_that_is_not_loaded_here_stays(log_in_as: LogIn) -> None:
    task, client = noop.using(retry_for=ValueError).enqueue(), log_in_as("superuser")
    Task.objects.update(options={"retry_for": ["shop.errors.Gone"]})
    assert send(client, task, priority="3").status_code == 302
    assert task_of(task).options == {"retry_for": ["shop.errors.Gone"]}
    answer = send(client, task, retry_for="shop.errors.Other")
    assert "is not an exception class that is loaded here" in answer.content.decode()
