"""No answer of the API contains a sensitive value, whatever is requested by whomever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue import Every, schedules
from taskqueue.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from taskqueue.models import Audit, Operation, Schedule, Task, Workflow
from tests.admin.everything import Everything, everything
from tests.api.matrix.cells import address, body_of, exposed_task, knock
from tests.api.matrix.table import ASKS
from tests.sample.rest_tasks import sign_in
from tests.sample.rest_workflows import deliver
from tests.sample.tasks import greet, log_in

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SECRET = "correct-horse-battery-staple"
ROLES = {"viewer": VIEWER, "operator": OPERATOR, "administrator": ADMINISTRATOR}
ASKED = [(route, ask) for route, ask in ASKS if route.partition("/")[0] != "docs"]


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """Tasks with a secret in each state, and a schedule of such."""
    with django_db_blocker.unblock(), atomic():
        made = everything("plain", name=log_in.name, args=["bob", SECRET], kwargs={})
        by_name = {"user": "bob", "password": SECRET}
        of_type = Task.objects.filter(name=log_in.name)
        of_type.filter(status__in=("failed", "ready")).update(args=[], kwargs=by_name)
        Workflow.objects.update(
            name=deliver.name, args=["monday"], kwargs={"token": SECRET}, context={"token": SECRET}
        )
        Schedule.objects.all().delete()
        for name in ("schedule", "paused schedule"):
            made.rows[name] = schedules.create(name, log_in, Every(hours=1), args=["bob", SECRET])
        schedules.pause("paused schedule")
        made.rows["exposed type"] = greet
        made.rows["exposed task"] = exposed_task(made, sign_in.name)
        made.rows["people"] = {name: _client(name) for name in ROLES}
        yield made
        set_rollback(True)


def _client(name: str) -> Client:
    user = User.objects.create_user(name)
    of_app = Permission.objects.filter(content_type__app_label="taskqueue")
    user.user_permissions.set(of_app.filter(codename__in=ROLES[name].permissions))
    client = Client()
    client.force_login(user)
    return client


def _said(client: Client, made: Everything) -> Iterator[tuple[str, str]]:
    """Every request of the table with what is answered, undone afterwards."""
    for route, ask in ASKED:
        with atomic():
            answer = knock(client, ask.method, address(route, ask, made), body_of(ask, made))
            where = f"{ask.method} {route} {answer.status_code}"
            yield where, f"{answer.content.decode()} {answer.headers}"
            for model in (Audit, Operation):
                assert SECRET not in str(list(model.objects.values_list())), where
            set_rollback(True)


@pytest.mark.parametrize("role", ROLES)
def test_no_answer_tells_a_sensitive_value(role: str, made: Everything) -> None:
    for where, said in _said(made.rows["people"][role], made):
        assert SECRET not in said, where


def test_no_list_of_tasks_tells_it_and_no_search_finds_it(made: Everything) -> None:
    for role in ("viewer", "operator"):
        client = made.rows["people"][role]
        assert SECRET not in client.get("/api/v1/tasks/?include=arguments").content.decode()
        for guess in (f"args.password:{SECRET}", f"args.1:{SECRET}", SECRET):
            assert client.get("/api/v1/tasks/", {"q": guess}).json()["results"] == [], guess


def test_arguments_of_the_unknown_are_for_those_who_may_view_them(made: Everything) -> None:
    with atomic():
        Task.objects.update(name="gone")
        Schedule.objects.update(task_name="gone")
        Workflow.objects.update(name="gone")
        for role in ("viewer", "operator"):
            for where, said in _said(made.rows["people"][role], made):
                assert SECRET not in said, (role, where)
        task = made.tasks["succeeded"]
        client = made.rows["people"]["administrator"]
        assert SECRET in client.get(f"/api/v1/tasks/{task.pk}/").content.decode()
        assert SECRET in client.get("/api/v1/schedules/schedule/").content.decode()
        workflow = made.rows["workflow"]
        assert SECRET in client.get(f"/api/v1/workflows/{workflow.pk}/").content.decode()
        set_rollback(True)
