"""Every route, for every role, by every method: what is refused writes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback

from taskqueue.api.base import ApiView
from tests.admin.everything import Everything
from tests.admin.matrix.roles import EVERY_PERMISSION, NONE, Clients, telling_sets
from tests.admin.matrix.stored import Stored, has_changed, no_writes
from tests.api.matrix.cells import METHODS, address, body_of, knock, routes
from tests.api.matrix.table import ASKS, ROUTES, TABLE, Ask

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def _names(value: Any) -> str:
    return f"{value.method}-{value.on}{value.query}" if isinstance(value, Ask) else str(value)


def test_every_route_stands_in_the_table() -> None:
    assert sorted(routes()) == ROUTES


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_is_let_in_who_has_not_logged_in(
    route: str, made: Everything, clients: Clients, before: Stored
) -> None:
    asks = TABLE[route]
    with no_writes():
        for ask in asks:
            url, body = address(route, ask, made), body_of(ask, made)
            for method in METHODS:
                answer = knock(clients.anonymous, method, url, body)
                if ask.for_anybody:
                    is_own = method in (ask.method, "HEAD")
                    assert answer.status_code == (ask.answers if is_own else 405), method
                    continue
                assert answer.status_code == 401, method
                assert answer["WWW-Authenticate"], method
    assert not has_changed(before)


@pytest.mark.parametrize(("route", "ask"), ASKS, ids=_names)
def test_who_lacks_a_permission_is_refused_and_nothing_is_written(
    route: str, ask: Ask, made: Everything, clients: Clients, before: Stored
) -> None:
    url, body = address(route, ask, made), body_of(ask, made)
    with no_writes():
        for name, permissions in telling_sets([[ask.needs]]).items():
            if ask.needs <= permissions:
                continue
            answer = knock(clients.staff(permissions), ask.method, url, body)
            assert answer.status_code == 403, (name, answer.content)
            assert answer["Content-Type"] == "application/problem+json"
            told = set(re.findall(r"taskqueue\.(\w+)", answer.json()["detail"]))
            assert told <= ask.needs - permissions, name
            assert told, (name, answer.content)
            if ask.method == "GET":
                assert knock(clients.staff(permissions), "HEAD", url).status_code == 403, name
    assert not has_changed(before)


@pytest.mark.parametrize(("route", "ask"), ASKS, ids=_names)
def test_who_has_the_permissions_is_answered_as_the_row_says(
    route: str, ask: Ask, made: Everything, clients: Clients, before: Stored
) -> None:
    url, body = address(route, ask, made), body_of(ask, made)
    people = {"only what is needed": clients.staff(ask.needs), "superuser": clients.superuser}
    for name, client in people.items():
        if ask.writes:
            with atomic():
                answer = knock(client, ask.method, url, body)
                assert answer.status_code == ask.answers, (name, answer.content)
                assert has_changed(before), (name, "did nothing")
                set_rollback(True)
            continue
        with no_writes():
            answer = knock(client, ask.method, url, body)
            assert answer.status_code == ask.answers, (name, answer.content)
            if ask.method == "GET":
                assert knock(client, "HEAD", url).status_code == ask.answers, name


@pytest.mark.parametrize(("route", "ask"), [each for each in ASKS if each[1].writes], ids=_names)
def test_an_act_that_is_begun_anew_is_done_as_the_first_time(
    route: str, ask: Ask, made: Everything, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_a_deadlock(self: ApiView, act: Any) -> Any:
        with atomic():
            act()
            set_rollback(True)
        return idempotent(self, act)

    idempotent = ApiView.idempotent
    monkeypatch.setattr(ApiView, "idempotent", after_a_deadlock)
    answer = knock(clients.superuser, ask.method, address(route, ask, made), body_of(ask, made))
    assert answer.status_code == ask.answers, answer.content


@pytest.mark.parametrize("route", ROUTES)
def test_a_method_that_is_none_of_the_address_changes_nothing(
    route: str, made: Everything, clients: Clients, before: Stored
) -> None:
    known = {ask.method for ask in TABLE[route]}
    known |= {"HEAD"} if "GET" in known else set()
    ask = TABLE[route][0]
    url, body = address(route, ask, made), body_of(ask, made)
    with no_writes():
        for client in (clients.staff(NONE), clients.staff(EVERY_PERMISSION), clients.superuser):
            for method in METHODS:
                if method not in known:
                    answer = knock(client, method, url, body)
                    assert answer.status_code == 405, method
                    assert method not in answer["Allow"].split(", ")
    assert not has_changed(before)
