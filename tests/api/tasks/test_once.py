"""An enqueue that is sent again, also at the same time, and within a project's transactions."""

from __future__ import annotations

from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.transaction import atomic

from taskqueue.engine.idempotency import Answer, first_answer
from taskqueue.engine.transient_errors import OutOfSight, is_passing
from taskqueue.models import Audit, IdempotencyKey, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.engine.steps import change, run_at_once
from tests.sample.rest_tasks import tell
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db
BODY = {"name": tell.name, "args": [1]}


def test_an_enqueue_sent_again_is_answered_as_the_first(root: ApiClient) -> None:
    first, second = (root.act("tasks/", BODY, Idempotency_Key="order 7") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert first["Location"] == second["Location"]
    assert (first.get("Idempotency-Replayed"), second["Idempotency-Replayed"]) == (None, "true")
    assert (Task.objects.count(), Audit.objects.count()) == (1, 1)


def test_the_same_key_with_another_body_is_refused(root: ApiClient) -> None:
    root.act("tasks/", BODY, Idempotency_Key="k")
    for other in ({**BODY, "args": [2]}, {**BODY, "priority": 1}):
        answer = root.act("tasks/", other, Idempotency_Key="k")
        problem(answer, 422, "idempotency_key_reused")
    problem(
        root.act("tasks/bulk/", {"tasks": [BODY]}, Idempotency_Key="k"),
        422, "idempotency_key_reused",
    )  # fmt: skip
    assert Task.objects.count() == 1


def test_a_refused_enqueue_may_be_sent_again_with_its_key(root: ApiClient) -> None:
    held = tell.using(unique_key="k").enqueue()
    body = {**BODY, "unique_key": "k", "on_duplicate": "raise"}
    for _ in range(2):
        problem(root.act("tasks/", body, Idempotency_Key="again"), 409, "duplicate_task")
    assert not IdempotencyKey.objects.exists()
    Task.objects.filter(id=held.id).delete()
    assert root.act("tasks/", body, Idempotency_Key="again").status_code == 201


def test_two_people_may_choose_the_same_key(root: ApiClient, member: Any) -> None:
    root.act("tasks/", BODY, Idempotency_Key="k")
    assert member("enqueue").act("tasks/", BODY, Idempotency_Key="k").status_code == 201
    assert Task.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["tasks/", "tasks/bulk/"])
def test_sent_twice_at_the_same_time_it_is_done_once(act: str) -> None:
    User.objects.create_superuser("root")
    clients, answers = [ApiClient(), ApiClient()], []
    for client in clients:
        client.force_login(User.objects.get())
    body = BODY if act == "tasks/" else {"tasks": [BODY]}
    together = Barrier(2)

    def ask(client: ApiClient) -> None:
        together.wait(60)
        answers.append(client.act(act, body, Idempotency_Key="k"))

    run_at_once([lambda each=each: ask(each) for each in clients])
    assert [each.status_code for each in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    assert [each.has_header("Idempotency-Replayed") for each in answers].count(True) == 1
    assert (Task.objects.count(), Audit.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_within_a_projects_transactions_everything_is_as_without(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    created = root.act("tasks/", BODY, Idempotency_Key="k")
    assert (created.status_code, Task.objects.count()) == (201, 1)
    assert root.act("tasks/", BODY, Idempotency_Key="k").content == created.content
    here = created["Location"]
    assert root.get(here).status_code == 200
    assert root.get(f"{here}?wait=0").status_code == 200
    below = here.removeprefix("/api/v1/")
    refused = root.act(f"{below}retry/", {"reason": "too early"})
    problem(refused, 409, "transition_refused")
    assert root.ask("PATCH", below, {"priority": 3}, If_Match='"old"').status_code == 412
    assert root.ask("PATCH", below, {"priority": 3}).status_code == 200
    many = {"tasks": [BODY, {"name": echo.name}]}
    assert root.act("tasks/bulk/", many).status_code == 403
    assert root.act(f"{below}cancel/").json()["status"] == "cancelled"
    assert root.ask("DELETE", below).status_code == 204
    assert (Task.objects.count(), IdempotencyKey.objects.count()) == (0, 1)


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_key_that_a_snapshot_does_not_show_ends_the_transaction(root: ApiClient) -> None:
    root.act("tasks/", BODY, Idempotency_Key="before")
    actor = IdempotencyKey.objects.get().actor
    with atomic():
        change(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert IdempotencyKey.objects.count() == 1
        run_at_once([lambda: take("k", actor)])
        with pytest.raises(OutOfSight) as caught:
            first_answer(connection, actor=actor, key="k", fingerprint="f")
    assert is_passing(caught.value)
    assert first_answer(connection, actor=actor, key="k", fingerprint="f") == Answer(status=0)


def take(key: str, actor: str) -> None:
    assert first_answer(connection, actor=actor, key=key, fingerprint="f") is None
