"""A sensitive value is on no page, in no export, message or form, and cannot be guessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue import Every, schedules
from taskqueue.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from taskqueue.admin.reports import HEADER
from taskqueue.models import Audit, Operation, Task
from tests.admin.everything import Everything, everything
from tests.admin.matrix.cells import act_address, filled_in
from tests.admin.matrix.roles import IS_FULL, Permissions
from tests.admin.matrix.table import PAGES
from tests.admin.pages import EDITED, text_of, variants
from tests.sample.tasks import log_in

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SECRET, OTHER_SECRET = "correct-horse-battery-staple", "tr0ub4dor-and-3"
UNKNOWN = "shop.tasks.gone"
ROLES = {
    "viewer": VIEWER.permissions,
    "operator": OPERATOR.permissions,
    "administrator": ADMINISTRATOR.permissions,
    "superuser": None,
}
ROUTES = [route for route in sorted(PAGES) if PAGES[route].look]


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """Tasks with a secret in each state, and a schedule of such."""
    with django_db_blocker.unblock(), atomic():
        rows = everything("plain", name=log_in.name, args=["bob", SECRET], kwargs={})
        by_name = {"user": "bob", "password": SECRET}
        Task.objects.filter(status__in=("failed", "ready")).update(args=[], kwargs=by_name)
        Task.objects.filter(pk=rows.row("retrying").pk).update(kwargs={"passwort": SECRET})
        Task.objects.filter(pk=rows.row("stranger").pk).update(args=["bob"], name=log_in.name)
        rows.rows["schedule"] = schedules.create(
            "secret", log_in, Every(hours=1), args=["bob", SECRET]
        )
        rows.rows["people"] = {name: _client(name, given) for name, given in ROLES.items()}
        yield rows
        set_rollback(True)


def _client(name: str, permissions: Permissions | None) -> Client:
    user = User.objects.create_user(name, is_staff=True, is_superuser=permissions is None)
    of_app = Permission.objects.filter(content_type__app_label="taskqueue")
    user.user_permissions.set(of_app.filter(codename__in=permissions or ()))
    client = Client()
    client.force_login(user)
    return client


def everything_said(client: Client, made: Everything, route: str) -> Iterator[tuple[str, str]]:
    """Each address of the route with what it answers, whole and as the part that is refreshed."""
    for url, query in variants(route, made):
        response = client.get(url, query)
        said = f"{text_of(response)} {response.headers}"
        yield f"{url} {query}", said
        if "refresh.js" in said:
            part = client.get(url, query, headers={"X-Requested-With": HEADER})
            yield f"part of {url} {query}", text_of(part)


LOOKERS = ["viewer", "superuser"]


def by_turns(things: list[str]) -> list[tuple[str, str]]:
    """Each with who looks at it: one by turns, or with TASKQUEUE_FULL=1 both."""
    return [
        (role, thing)
        for place, thing in enumerate(things)
        for number, role in enumerate(LOOKERS)
        if IS_FULL or (place + number) % len(LOOKERS) == 0
    ]


@pytest.mark.parametrize(("role", "route"), by_turns(ROUTES))
def test_no_page_shows_a_sensitive_value(role: str, route: str, made: Everything) -> None:
    for where, said in everything_said(made.rows["people"][role], made, route):
        assert SECRET not in said, where


@pytest.mark.parametrize("role", ROLES if IS_FULL else ["operator", "superuser"])
def test_nothing_that_is_done_tells_a_sensitive_value(role: str, made: Everything) -> None:
    client = made.rows["people"][role]
    for route, page in PAGES.items():
        for act in page.acts:
            body = filled_in(act.body, made)
            with atomic():
                answer = client.post(act_address(route, act, made), body, follow=True)
                assert SECRET not in text_of(answer), (route, act.name)
                _check_records(f"{route} {act.name}")
                set_rollback(True)


def _check_records(where: str) -> None:
    for model in (Audit, Operation, LogEntry):
        assert SECRET not in str(list(model.objects.values_list())), where


@pytest.mark.parametrize("what", EDITED)
@pytest.mark.parametrize("wrong", ["[", '["bob", "[redacted]", 3]', '{"a": 1}'])
def test_a_form_that_is_shown_again_contains_no_sensitive_value(
    what: str, wrong: str, made: Everything
) -> None:
    client = made.rows["people"]["superuser"]
    url = f"/admin/taskqueue/task/{made.row(EDITED[what]).pk}/edit/{what}/"
    for body in ({"args": wrong, "kwargs": wrong}, {"args": "[]", "kwargs": wrong}, {}):
        assert SECRET not in text_of(client.post(url, body))


def test_other_arguments_want_the_secret_that_stands_redacted_again(made: Everything) -> None:
    client = made.rows["people"]["operator"]
    old = made.row("succeeded")
    body = {"arg_user": "ann", "arg_password": "", "reviewed": "", "reason": "typo"}
    address = f"/admin/taskqueue/task/{old.pk}/edit/retry_with/"
    refused = client.post(address, body)
    assert refused.context["form"].errors
    assert SECRET not in text_of(refused)
    body["arg_password"] = OTHER_SECRET
    shown = client.post(address, body)
    assert OTHER_SECRET not in text_of(shown)
    body["reviewed"] = shown.context["form"].data["reviewed"]
    answer = client.post(address, body, follow=True)
    assert Task.objects.get(retry_of=old).args == ["ann", OTHER_SECRET]
    assert SECRET not in text_of(answer)
    assert OTHER_SECRET not in text_of(answer)
    _check_records("retry")


def test_a_secret_that_is_written_anew_is_recorded_nowhere_but_in_the_task(
    made: Everything,
) -> None:
    client = made.rows["people"]["superuser"]
    address = f"/admin/taskqueue/task/add/?name={log_in.name}"
    body = {"arg_user": '"ann"', "arg_password": OTHER_SECRET, "options": "{}"}
    for password in (OTHER_SECRET, f'"{OTHER_SECRET}"', f'["{OTHER_SECRET}"'):
        answer = client.post(address, {**body, "arg_password": password}, follow=True)
        assert OTHER_SECRET not in text_of(answer), password
        answer = client.post(address, {**body, "arg_password": password, "priority": "x"})
        assert OTHER_SECRET not in text_of(answer), password
    for model in (Audit, Operation, LogEntry):
        assert OTHER_SECRET not in str(list(model.objects.values_list()))
    assert (
        Task.objects.filter(kwargs__password=OTHER_SECRET).exists()
        or Task.objects.filter(args__1=OTHER_SECRET).exists()
    )


# Guessing

GUESSES = [
    'args.password:"{0}"', "args.password:{0}", "args.1:{0}", 'args.1:"{0}"', "args.passwort:{0}",
    "{0}", '"{0}"', "error:{0}", "key:{0}", "kwargs.password:{0}", "args:{0}", "metadata.0:{0}",
    "args.password.0:{0}", "args.user:bob args.password:{0}",
]  # fmt: skip


@pytest.mark.parametrize(("role", "guess"), by_turns(GUESSES))
def test_a_search_is_no_way_to_guess(guess: str, role: str, made: Everything) -> None:
    client = made.rows["people"][role]
    right, wrong = guess.format(SECRET), guess.format(SECRET[::-1])
    for route in ("task/", "task/export/", "operation/start/", "failure/", "audit/", "lease/"):
        seen = [_figures(client, route, each, made) for each in (right, wrong)]
        assert seen[0] == seen[1], (route, guess)


def _figures(client: Client, route: str, guess: str, made: Everything) -> Any:
    """Which rows an answer tells of, whatever it says of the search itself."""
    given = {"verb": "retry"} if route == "operation/start/" else {}
    answer = client.get(f"/admin/taskqueue/{route}", {**given, "q": guess})
    text = text_of(answer)
    return answer.status_code, sorted(
        name for name in (*made.tasks, "stranger") if str(made.row(name).pk) in text
    )


# Of definitions that are not known here nothing tells which arguments are sensitive


@pytest.mark.parametrize("route", ROUTES)
def test_arguments_of_the_unknown_are_hidden_from_who_may_not_view_them(
    route: str, made: Everything
) -> None:
    Task.objects.update(name=UNKNOWN)
    schedules_of = type(made.rows["schedule"]).objects
    schedules_of.update(task_name=UNKNOWN)
    for role in ("viewer", "operator") if IS_FULL else ("operator",):
        for where, said in everything_said(made.rows["people"][role], made, route):
            assert SECRET not in said, (role, where)


def test_who_may_view_them_sees_them_and_may_search_by_them(made: Everything) -> None:
    Task.objects.update(name=UNKNOWN)
    task = made.row("succeeded")
    for role, is_shown in {"operator": False, "administrator": True}.items():
        client = made.rows["people"][role]
        page = text_of(client.get(f"/admin/taskqueue/task/{task.pk}/change/"))
        assert (SECRET in page) == is_shown
        found = text_of(client.get("/admin/taskqueue/task/", {"q": f"args.1:{SECRET}"}))
        assert (str(task.pk) in found) == is_shown
        sent = text_of(client.get("/admin/taskqueue/task/export/", {"format": "jsonl"}))
        assert (SECRET in sent) == is_shown
