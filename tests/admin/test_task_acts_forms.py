"""The forms of a task: other arguments, another time, other terms; what is wrong is told there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from taskqueue import control
from taskqueue.admin.tasks.forms import FORMS
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.models import Audit, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.test_admin import read, url
from tests.admin.test_task_acts import EVERY, state, undone
from tests.engine.steps import task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, echo, log_in, noop

pytestmark = pytest.mark.django_db
FILLED = {
    "retry_with": {"args": "[]", "kwargs": "{}"},
    "reschedule": {"run_after": "in 5 minutes"},
    "update": {
        "priority": "7", "queue_name": "mail", "max_attempts": "2", "timeout_0": "90",
        "timeout_1": "1",
    },
}  # fmt: skip


def edit_url(task: Any, what: str) -> str:
    """The address of a form."""
    return url("task", "edit", task.id, what)


def send(client: Client, task: Any, what: str, **given: str) -> Any:
    """Post a form, filled in but for what is given."""
    return client.post(edit_url(task, what), {**FILLED[what], "reason": "because", **given})


def cancelled(definition: Any, *args: Any, **kwargs: Any) -> Any:
    """A finished task."""
    result = definition.enqueue(*args, **kwargs)
    result.cancel()
    Audit.objects.all().delete()
    return result


@pytest.mark.parametrize("status", EVERY)
def test_a_form_is_offered_where_its_verb_succeeds(status: TaskStatus, log_in_as: LogIn) -> None:
    task, client = task_that_is(status), log_in_as("superuser")
    page = read(client, url("task", "change", task.id))
    Audit.objects.all().delete()
    before = state()
    for what, edit in ((name, TASK_VERBS[name]) for name in FORMS):
        with undone():
            is_offered = edit_url(task, what) in page
            assert is_offered == edit.fits(Task.objects.get(id=task.id))
            assert client.get(edit_url(task, what)).status_code == (200 if is_offered else 302)
            answer = send(client, task, what)
            assert answer.status_code == 302, what
            if is_offered:
                assert Audit.objects.get().reason == "because"
                assert LogEntry.objects.get().object_id == str(task.id)
            else:
                assert state() == before
                assert f"The task is {status} now." in read(client, answer["Location"])


@pytest.mark.parametrize(
    "permissions", [["stop"], ["purge"], ["enqueue"], ["operate"], ["operate", "enqueue"]]
)
def test_the_forms_are_for_those_who_operate(permissions: list[str], log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", *permissions)
    for what in FORMS:
        with undone():
            task = task_that_is(
                TaskStatus.CANCELLED if what == "retry_with" else TaskStatus.SCHEDULED
            )
            needed = {"operate", "enqueue"} if what == "retry_with" else {"operate"}
            before, may = state(), needed <= set(permissions)
            page = read(client, url("task", "change", task.id))
            assert (edit_url(task, what) in page) == may
            assert client.get(edit_url(task, what)).status_code == (200 if may else 403)
            assert state() == before
            assert send(client, task, what).status_code == (302 if may else 403)
            assert (state() != before) == may


def test_a_form_needs_the_token_and_one_of_its_names(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.CANCELLED), log_in_as("superuser")
    before = state()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert send(strict, task, "retry_with").status_code == 403
    assert client.get(edit_url(task, "nonsense")).status_code == 404
    assert client.put(edit_url(task, "retry_with")).status_code == 405
    assert state() == before
    control.delete(task.id)
    assert "no such task" in client.get(edit_url(task, "retry_with"), follow=True).content.decode()


# Other arguments


def test_a_retry_with_other_arguments_leads_to_the_new_task(log_in_as: LogIn) -> None:
    old, client = cancelled(add, 1, b=2), log_in_as("superuser")
    page = read(client, edit_url(old, "retry_with"))
    assert 'name="arg_b" value="2"' in page
    answer = send(client, old, "retry_with", arg_a="1", arg_b="2")
    [new] = Task.objects.exclude(id=old.id)
    assert answer["Location"] == url("task", "change", new.id)
    assert (new.args, new.kwargs, new.retry_of_id) == ([1], {"b": 2}, old.id)
    page = read(client, url("task", "change", old.id))
    assert url("task", "change", new.id) in page
    assert url("task", "change", old.id) in read(client, url("task", "change", new.id))


BAD_ARGUMENTS: list[dict[str, str]] = [
    {"args": "nonsense"}, {"args": "{}"}, {"kwargs": "[]"}, {"args": "[1, 2, 3]"},
    {"kwargs": '{"c": 1}'}, {"args": "[NaN]"}, {"args": '["\\u0000"]'}, {"args": '["\\ud800"]'},
    {"args": "[" * 40 + "]" * 40}, {"args": "[" * 100_000}, {"args": "[1e999]"},
    {"args": f"[{2**63}]"}, {"args": '["' + "x" * 70_000 + '"]'},
    {"kwargs": '{"a": 1, "a": 2}'}, {"args": f'["{EVIL}", 2, 3]'},
]  # fmt: skip


def refused(client: Client, task: Any, what: str, bad: list[dict[str, str]]) -> None:
    """Nothing of it is written, each is told, none is given back as markup."""
    before = state()
    for given in bad:
        answer = send(client, task, what, **given)
        assert answer.status_code == 200, given
        assert "errorlist" in answer.content.decode(), given
        assert EVIL not in answer.content.decode(), given
    assert state() == before


def test_invalid_arguments_are_reported_and_nothing_is_written(log_in_as: LogIn) -> None:
    old, client = cancelled(add, 1), log_in_as("superuser")
    # They do not fit the signature any more, so that they are written as JSON.
    Task.objects.update(args=[1, 2, 3])
    whole = [{"args": "[1]", "kwargs": "{}", **given} for given in BAD_ARGUMENTS]
    refused(client, old, "retry_with", whole)


def test_secrets_as_json_are_kept_only_while_nothing_else_changes(log_in_as: LogIn) -> None:
    old, client = cancelled(log_in, "bob", password=SECRET), log_in_as("superuser")
    Task.objects.update(kwargs={"password": SECRET, "gone": 1})
    page = read(client, edit_url(old, "retry_with"))
    assert SECRET not in page
    assert "[redacted]" in page
    for call in (
        {"args": '["eve"]', "kwargs": '{"password": "[redacted]", "gone": "[redacted]"}'},
        {"args": '["eve"]', "kwargs": ""},
    ):
        answer = send(client, old, "retry_with", **call)
        assert "kept only while no argument changes" in answer.content.decode()
    assert Task.objects.count() == 1
    confirmed(client, old, args='["eve"]', kwargs='{"password": "another"}')
    written = Task.objects.get(retry_of=old.id)
    assert written.kwargs == {"password": "another"}
    answer = send(client, old, "retry_with", args='["eve", "[redacted]"]', kwargs="{}")
    assert "again: there is no stored value to keep." in answer.content.decode()
    assert Task.objects.count() == 2


def confirmed(client: Client, task: Any, **given: str) -> Any:
    """Send the form of a retry, and once more what the page then shows."""
    page = send(client, task, "retry_with", **given)
    reviewed = page.context["form"].data["reviewed"]
    return send(client, task, "retry_with", **given, reviewed=reviewed)


def test_a_secret_cannot_be_moved_to_where_it_is_shown(log_in_as: LogIn) -> None:
    old, client = cancelled(log_in, "bob", SECRET), log_in_as("superuser")
    Task.objects.update(kwargs={"gone": 1})
    send(client, old, "retry_with", args='["[redacted]", "[redacted]"]', kwargs="{}")
    assert Task.objects.count() == 1


def test_hidden_arguments_are_kept_or_written_anew(log_in_as: LogIn) -> None:
    old = cancelled(log_in, "robert", SECRET)
    Task.objects.filter(id=old.id).update(name="shop.tasks.gone")
    client = log_in_as("staff", "view_task", "operate", "enqueue")
    page = read(client, edit_url(old, "retry_with"))
    assert SECRET not in page
    assert "robert" not in page
    send(client, old, "retry_with", args="", kwargs="")
    kept = Task.objects.get(retry_of=old.id)
    assert kept.args == ["robert", SECRET]
    control.cancel(kept.id)
    send(client, kept, "retry_with", args='["[redacted]"]', kwargs="")
    new = Task.objects.get(retry_of=kept.id)
    assert new.args == ["[redacted]"]
    Task.objects.filter(id=old.id).update(kwargs={"password": SECRET})
    answer = send(client, old, "retry_with", args='["eve"]', kwargs="")
    assert list(answer.context["form"].errors) == ["kwargs"]


def test_who_may_view_any_argument_edits_what_no_definition_hides(log_in_as: LogIn) -> None:
    old = cancelled(echo, "bob")
    Task.objects.filter(id=old.id).update(name="shop.tasks.gone")
    client = log_in_as("staff", "view_task", "operate", "enqueue", "view_arguments")
    assert "bob" in read(client, edit_url(old, "retry_with"))


# Another time


SPANS = {
    "in 5 minutes": 300, "5m": 300, "2h": 7200, "in 1 day": 86_400, "90 s": 90,
    "1.5 hours": 5400, "IN 2 WEEKS": 1_209_600,
}  # fmt: skip


def test_a_time_from_now_is_understood(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    for given, seconds in SPANS.items():
        send(client, task, "reschedule", run_after=given)
        due = task_of(task).run_after - timezone.now()
        assert timedelta(seconds=seconds - 60) < due <= timedelta(seconds=seconds), given


def test_a_moment_is_one_of_the_current_zone_unless_it_says_another(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    with timezone.override("Europe/Berlin"):
        send(client, task, "reschedule", run_after="2099-01-01 09:00+05:00")
        assert task_of(task).run_after.isoformat() == "2099-01-01T04:00:00+00:00"
        send(client, task, "reschedule", run_after="2099-01-01 09:00")
        expected = timezone.make_aware(timezone.datetime(2099, 1, 1, 9))  # type: ignore[attr-defined]
        assert task_of(task).run_after == expected


BAD_TIMES = [
    "", "soon", "in -5 minutes", "in 999999999 weeks", "2026-13-01", "9999-12-31 23:59-10:00",
    "0001-01-01 00:00+10:00", "\x00", EVIL, "in 5 fortnights", "1" * 200,
]  # fmt: skip


def test_an_invalid_time_is_reported(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    refused(client, task, "reschedule", [{"run_after": given} for given in BAD_TIMES])


# Other terms


def test_terms_are_changed_and_only_those_that_differ(log_in_as: LogIn) -> None:
    task, client = noop.using(timeout=9).enqueue(), log_in_as("superuser")
    assert 'value="9"' in read(client, edit_url(task, "update"))
    same = {"queue_name": "default", "max_attempts": "1", "timeout_0": "9", "timeout_1": "1"}
    send(client, task, "update", **same)
    assert Audit.objects.get().detail == "priority: 0 to 7"
    send(client, task, "update")
    row = task_of(task)
    assert (row.queue_name, row.max_attempts, row.options["timeout"]) == ("mail", 2, 90)
    before = state()
    answer = send(client, task, "update")
    assert "Nothing was changed" in answer.content.decode()
    assert state() == before


BAD_TERMS: list[dict[str, str]] = [
    {"priority": "101"}, {"priority": "x"}, {"queue_name": ""}, {"queue_name": "a b"},
    {"queue_name": EVIL}, {"queue_name": "\x00"}, {"max_attempts": "0"},
    {"max_attempts": str(2**40)}, {"timeout_0": "-1"}, {"timeout_0": "1e30"},
    {"priority": "9" * 5000},
]  # fmt: skip


def test_invalid_options_are_reported(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    refused(client, task, "update", BAD_TERMS)
