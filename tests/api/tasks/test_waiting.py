"""Long polls: an answer as soon as there is something to tell, and at the end of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from taskqueue import control
from taskqueue.api.tasks import waiting
from taskqueue.models import Task, TaskLog
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.api.tasks.test_detail import path
from tests.api.tasks.test_history import say
from tests.engine.steps import claim_one
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


@pytest.fixture
def while_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Do something in place of the n-th sleep; the sleeps that were asked for."""

    def arrange(*acts: Callable[[], Any]) -> list[float]:
        slept: list[float] = []
        left = list(acts)

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if left:
                left.pop(0)()

        monkeypatch.setattr(time, "sleep", sleep)
        return slept

    return arrange


def test_a_wait_ends_with_the_task(
    root: ApiClient, while_it_sleeps: Callable[..., list[float]]
) -> None:
    result = noop.enqueue()
    slept = while_it_sleeps(lambda: None, lambda: control.cancel(result.id))
    told = root.look(path(result, "?wait=60")).json()
    assert (told["status"], told["is_finished"]) == ("cancelled", True)
    assert len(slept) == 2


def test_a_wait_that_times_out_returns_the_unfinished_task(root: ApiClient) -> None:
    result = noop.enqueue()
    begun = time.monotonic()
    told = root.look(path(result, "?wait=1")).json()
    assert (told["status"], told["is_finished"]) == ("ready", False)
    assert time.monotonic() - begun >= 1


def test_a_finished_task_is_returned_without_waiting(
    root: ApiClient, while_it_sleeps: Callable[..., list[float]]
) -> None:
    result = noop.enqueue()
    control.cancel(result.id)
    slept = while_it_sleeps()
    assert root.look(path(result, "?wait=60")).status_code == 200
    assert root.look(path(result, "logs/?wait=60")).json()["is_complete"] is True
    assert slept == []


def test_with_an_etag_any_change_is_waited_for(
    root: ApiClient, while_it_sleeps: Callable[..., list[float]]
) -> None:
    result = noop.enqueue()
    etag = root.look(path(result))["ETag"]
    while_it_sleeps(claim_one)
    answer = root.look(path(result, "?wait=60"), If_None_Match=etag)
    assert answer.json()["status"] == "running"
    assert root.look(path(result, "?wait=0"), If_None_Match=answer["ETag"]).status_code == 304


def test_lines_are_followed_as_they_come(
    root: ApiClient, while_it_sleeps: Callable[..., list[float]]
) -> None:
    result = noop.enqueue()
    say(result.id, "old")
    after = TaskLog.objects.get().id
    slept = while_it_sleeps(lambda: None, lambda: say(result.id, "new"))
    told = root.look(path(result, f"logs/?after={after}&wait=30")).json()
    assert [each["message"] for each in told["results"]] == ["new"]
    assert len(slept) == 2


def test_a_task_that_goes_meanwhile_is_404(
    root: ApiClient, while_it_sleeps: Callable[..., list[float]]
) -> None:
    result = noop.enqueue()
    while_it_sleeps(lambda: Task.objects.all().delete())
    problem(root.look(path(result, "?wait=60")), 404, "task_not_found")


def test_who_waits_too_often_at_a_time_is_answered_at_once(
    root: ApiClient, member: Any, while_it_sleeps: Callable[..., list[float]], settings: Any
) -> None:
    settings.TASKQUEUE = {"API_LONG_POLLS": 3}
    result, wait = noop.enqueue(), path(noop.enqueue(), "?wait=60")
    other, third = member("view_task"), member("view_task")
    etag = root.look(path(result))["ETag"]
    seen: list[int] = []

    def ask(client: ApiClient) -> Callable[[], None]:
        return lambda: seen.append(client.look(wait).status_code)

    def beyond() -> None:
        """Two wait: the first one's others do not, a third does, and then nobody else."""
        before = len(slept)
        answers = [
            root.look(wait),
            root.look(path(result, "?wait=60"), If_None_Match=etag),
            root.look(path(result, "logs/?wait=60")),
        ]
        assert [each.status_code for each in answers] == [200, 304, 200]
        assert [each["Retry-After"] for each in answers] == ["5", "5", "5"]
        assert answers[0].json()["status"] == "ready"
        assert len(slept) == before
        other.look(wait)

    def full() -> None:
        before = len(slept)
        assert third.look(wait).json()["status"] == "ready"
        assert len(slept) == before
        Task.objects.update(status="cancelled", finished_at=timezone.now())

    slept = while_it_sleeps(ask(root), beyond, full)
    assert root.look(wait).json()["status"] == "cancelled"
    assert seen == [200]
    assert not waiting.SEATS._taken


@pytest.mark.parametrize(
    ("is_threaded", "chosen", "waits"),
    [(True, None, True), (False, None, False), (False, 1, True), (True, 0, False)],
)
def test_a_process_without_threads_does_not_wait_unless_the_setting_says_so(
    is_threaded: bool,
    chosen: int | None,
    waits: bool,
    root: ApiClient,
    while_it_sleeps: Callable[..., list[float]],
    settings: Any,
) -> None:
    settings.TASKQUEUE = {"API_LONG_POLLS": chosen}
    root.defaults["wsgi.multithread"] = is_threaded
    result = noop.enqueue()
    slept = while_it_sleeps(lambda: control.cancel(result.id))
    answer = root.look(path(result, "?wait=60"))
    assert answer.json()["status"] == ("cancelled" if waits else "ready")
    assert (len(slept), answer.headers.get("Retry-After")) == ((1, None) if waits else (0, "5"))


@pytest.mark.parametrize("wait", ["-1", "61", "1.5", "long", "", "1e1"])
def test_no_wait_is_longer_than_proxies_bear(wait: str, root: ApiClient) -> None:
    result = noop.enqueue()
    problem(root.look(path(result, f"?wait={wait}")), 400, "invalid")


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("age", [0, 60, None])
def test_a_connection_that_nobody_keeps_is_given_back_while_it_sleeps(
    age: int | None, root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = noop.enqueue()
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    monkeypatch.setattr(waiting, "LONGEST_PAUSE", 0)
    seen: list[bool] = []

    def sleep(seconds: float) -> None:
        seen.append(connection.connection is None)
        control.cancel(result.id)

    monkeypatch.setattr(time, "sleep", sleep)
    assert root.look(path(result, "?wait=60")).json()["status"] == "cancelled"
    assert seen == [age == 0]


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_connections_to_other_databases_are_given_back_too(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connection.copy()
    other.settings_dict = {**other.settings_dict, "CONN_MAX_AGE": 0}
    monkeypatch.setitem(connections.databases, "other", other.settings_dict)
    connections["other"] = other
    monkeypatch.setattr(waiting, "LONGEST_PAUSE", 0)
    result, seen = noop.enqueue(), []

    def sleep(seconds: float) -> None:
        seen.append(other.connection is None)
        if len(seen) == 1:
            other.set_autocommit(False)
        else:
            control.cancel(result.id)

    try:
        other.ensure_connection()
        monkeypatch.setattr(time, "sleep", sleep)
        assert root.look(path(result, "?wait=60")).json()["status"] == "cancelled"
        assert seen == [True, False]
    finally:
        other.close()
        del connections["other"]


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_it_sleeps_whatever_the_project_says(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = noop.enqueue()
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    seen: list[bool] = []

    def sleep(seconds: float) -> None:
        seen.append(connection.in_atomic_block)
        control.cancel(result.id)

    monkeypatch.setattr(time, "sleep", sleep)
    assert root.look(path(result, "?wait=60")).json()["status"] == "cancelled"
    assert seen == [False]
