"""Buttons of a task call the verbs; who lacks the permission of a verb's kind cannot use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.test import Client

from taskqueue import control
from taskqueue.admin.tasks.acts import BUTTONS, is_offered
from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.models import Audit, Lease, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.schedule_rows import messages_of
from tests.admin.test_admin import read, url
from tests.engine.test_control import task_that_is
from tests.sample.tasks import noop
from tests.verb_needs import NEEDS

pytestmark = pytest.mark.django_db
LIST = "/admin/taskqueue/task/"
LATE = [TaskStatus.RUNNING, TaskStatus.READY]
EVERY = [*sorted({*TaskStatus} - {*LATE}), *LATE]
"""What is ready comes last: the others are made by a claim of all that is ready. What runs comes
late: a retry fits it only where its worker is lost."""
KINDS = ("view_task", "operate", "stop", "purge", "enqueue")


def press(client: Client, task: Any, verb: str, **more: str) -> str:
    """Press a button of the page; what is told."""
    return messages_of(client, url("task", "act", task.id), {"verb": verb, **more})


def sure(verb: str) -> dict[str, str]:
    """What the page that asks adds."""
    return {"post": "yes"} if verb == "delete" else {}


def state() -> Any:
    """All that an act could change."""
    return (
        list(Task.objects.order_by("id").values()), list(Lease.objects.order_by("id").values()),
        list(Audit.objects.order_by("id").values()), LogEntry.objects.count(),
    )  # fmt: skip


def shown_buttons(page: str) -> set[str]:
    """The verbs that a page offers."""
    shown = {verb for verb in BUTTONS if f'name="verb" value="{verb}"' in page}
    return shown | ({"delete"} if 'id="taskqueue-delete"' in page else set())


@contextmanager
def undone() -> Iterator[None]:
    """Leaves no trace of what is done within."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("status", EVERY)
def test_a_verb_succeeds_in_the_states_that_show_its_button(
    status: TaskStatus, log_in_as: LogIn
) -> None:
    task, client = task_that_is(status), log_in_as("superuser")
    Audit.objects.all().delete()
    page = read(client, url("task", "change", task.id))
    offered, before, row = shown_buttons(page), state(), Task.objects.get(id=task.id)
    for name, verb in BUTTONS.items():
        with undone():
            told = press(client, task, name, reason="because", **sure(name))
            assert (name in offered) == is_offered(verb, row)
            if name in offered:
                assert str(verb.done) in told
                assert set(Audit.objects.values_list("actor", "reason")) == {("user", "because")}
                assert "because" in LogEntry.objects.get(object_id=str(task.id)).change_message
            elif (name, status) == ("cancel", TaskStatus.RUNNING):
                assert str(BUTTONS["stop"].done) in told
            else:
                assert f"The task is {status} now." in told
                assert state() == before


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), ["operate", "enqueue"]])
def test_each_verb_asks_for_the_permission_of_its_kind(kinds: list[str], log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", *kinds)
    for name in BUTTONS:
        with undone():
            task = task_that_is(_fitting(name))
            offered, before = shown_buttons(read(client, url("task", "change", task.id))), state()
            given = {"verb": name, **sure(name)}
            status = client.post(url("task", "act", task.id), given).status_code
            may = set(NEEDS["task", name].split()) <= set(kinds)
            assert status == (302 if may else 403), name
            assert (state() != before) == (name in offered) == may, name


def _fitting(verb: str) -> TaskStatus:
    return next(status for status in EVERY if status in BUTTONS[verb].statuses)


@pytest.mark.parametrize("role", ["anonymous", "user", "staff", "viewer"])
def test_a_user_who_may_only_view_changes_nothing(role: str, log_in_as: LogIn) -> None:
    tasks = [task_that_is(status) for status in EVERY]
    before, client = state(), log_in_as(role)
    for task in tasks:
        for verb in BUTTONS:
            given = {"verb": verb, "post": "yes"}
            for page in ("act", "delete", "change"):
                status = client.post(url("task", page, task.id), given).status_code
                assert status == (302 if role in ("anonymous", "user") else 403), (page, given)
    assert state() == before


def test_who_may_act_must_also_be_allowed_to_see(log_in_as: LogIn) -> None:
    task = task_that_is(TaskStatus.FAILED)
    client, before = log_in_as("staff", "operate", "stop", "purge"), state()
    for verb in BUTTONS:
        answer = client.post(url("task", "act", task.id), {"verb": verb, "post": "yes"})
        assert answer.status_code == 403
    assert state() == before


def test_to_cancel_what_runs_is_to_stop_it(log_in_as: LogIn) -> None:
    task = task_that_is(TaskStatus.RUNNING)
    operator = log_in_as("staff", "view_task", "operate")
    before = state()
    answer = operator.post(url("task", "act", task.id), {"verb": "cancel"})
    assert answer.status_code == 403
    assert state() == before


def test_an_operator_cancels_nothing_that_started_as_they_pressed(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_that_is(TaskStatus.RUNNING)
    client = log_in_as("staff", "view_task", "operate")
    from taskqueue.admin.tasks.acts import TaskActs

    found = TaskActs.task_of
    seen: list[Any] = []

    def as_it_was(self: Any, object_id: object) -> Any:
        row: Any = found(self, object_id)
        if not seen:
            row.status = "ready"
        seen.append(row)
        return row

    monkeypatch.setattr(TaskActs, "task_of", as_it_was)
    assert "The task is running now." in press(client, task, "cancel")
    assert Lease.objects.get().stop_requested_at is None


def test_buttons_need_a_post_with_the_token(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.FAILED), log_in_as("superuser")
    before = state()
    for verb in BUTTONS:
        assert client.get(url("task", "act", task.id), {"verb": verb}).status_code == 405
    assert client.get(url("task", "delete", task.id), {"post": "yes"}).status_code == 200
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    for page in ("act", "delete"):
        given = {"verb": "retry", "post": "yes"}
        assert strict.post(url("task", page, task.id), given).status_code == 403
    assert state() == before


def test_an_unknown_action_or_a_deleted_task_is_reported(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.FAILED), log_in_as("superuser")
    for verb in (EVIL, "", "kill"):
        assert "nothing of that name" in press(client, task, verb)
    control.delete(task.id)
    for verb in ("retry", "delete", "stop"):
        assert "no such task any more" in press(client, task, verb)
    assert client.post(f"{LIST}no-id/act/", {"verb": "retry"}).status_code in (302, 404)


def test_a_page_asks_before_it_deletes(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.FAILED), log_in_as("superuser")
    address = url("task", "delete", task.id)
    for answer in (
        client.get(address),
        client.post(url("task", "act", task.id), {"verb": "delete", "reason": EVIL}),
    ):
        assert answer.status_code == 200
        assert noop.name in answer.content.decode()
        assert EVIL not in answer.content.decode()
        assert Task.objects.count() == 1
    answer = client.post(address, {"post": "yes", "reason": "old"}, follow=True)
    assert "Task deleted." in answer.content.decode()
    assert answer.redirect_chain[-1][0] == LIST
    assert not Task.objects.exists()
    assert Audit.objects.get(verb="delete").reason == "old"


@pytest.mark.parametrize("status", sorted(PENDING | {TaskStatus.RUNNING}))
def test_an_unfinished_task_has_no_page_to_delete_it(status: TaskStatus, log_in_as: LogIn) -> None:
    task, client = task_that_is(status), log_in_as("superuser")
    answer = client.get(url("task", "delete", task.id), follow=True)
    assert f"The task is {status} now." in answer.content.decode()
    assert status not in FINISHED


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("/admin/taskqueue/task/?q=x", "/admin/taskqueue/task/?q=x"),
        ("https://evil.example/", None),
        ("//evil.example/", None),
        ("javascript:alert(1)", None),
        ("/\\evil.example", None),
        ("", None),
    ],
)
def test_a_button_leads_back_to_our_own_pages_only(
    named: str, expected: str | None, log_in_as: LogIn
) -> None:
    task, client = task_that_is(TaskStatus.FAILED), log_in_as("superuser")
    answer = client.post(url("task", "act", task.id), {"verb": "retry", "next": named})
    assert answer["Location"] == (expected or url("task", "change", task.id))


def test_a_duplicate_is_what_one_is_led_to(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.FAILED), log_in_as("superuser")
    answer = client.post(url("task", "act", task.id), {"verb": "duplicate"})
    [new] = Task.objects.exclude(id=task.id)
    assert answer["Location"] == url("task", "change", new.id)


def test_a_reason_of_any_kind_is_kept_as_far_as_it_fits(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.RUNNING), log_in_as("superuser")
    press(client, task, "stop", reason="\x00" + EVIL + "x" * 5000)
    kept = Audit.objects.get(verb="stop").reason
    assert len(kept) == 1000
    assert EVIL in kept
    assert EVIL not in read(client, url("task", "change", task.id))
    assert EVIL not in read(client, url("task", "history", task.id))
