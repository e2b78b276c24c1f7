"""Every route, for every role and method: only users with the permission can view or act."""

from __future__ import annotations

import pytest
from django.db.transaction import atomic, set_rollback
from django.test import Client

from tests.admin.everything import Everything
from tests.admin.matrix.cells import (
    METHODS,
    act_address,
    filled_in,
    is_let_in,
    knock,
    page_address,
)
from tests.admin.matrix.kinds import Act, Page
from tests.admin.matrix.roles import EVERY_PERMISSION, IS_FULL, NONE, Clients, telling_sets
from tests.admin.matrix.routes import routes
from tests.admin.matrix.stored import Stored, has_changed, no_writes
from tests.admin.matrix.table import PAGES

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROUTES = sorted(PAGES)
HARMLESS = {200, 302, 400, 403, 404, 405}
"""The answers to a request that changes nothing, of somebody who may look."""
EVERY_METHOD_FOR = ("none", "taskqueue viewer")
"""Sets of permissions that are tried by the rarer methods too; the superuser is besides."""


def test_every_route_stands_in_the_table() -> None:
    assert sorted(routes()) == ROUTES


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_is_let_in_who_has_not_logged_in(
    route: str, made: Everything, clients: Clients, before: Stored
) -> None:
    page = PAGES[route]
    client = clients.anonymous
    for method in METHODS:
        if page.look is not None:
            assert knock(client, method, page_address(route, page, made), page.query) == 302, method
    for act in page.acts:
        assert knock(client, "POST", act_address(route, act, made), act.body) == 302, act.name
    assert not has_changed(before)


@pytest.mark.parametrize("route", ROUTES)
def test_a_page_is_for_those_who_may_look(
    route: str, made: Everything, clients: Clients, before: Stored
) -> None:
    page = PAGES[route]
    people = {
        f"staff with {name}": (clients.staff(each), each)
        for name, each in telling_sets(page.rules).items()
    }
    people["superuser"] = clients.superuser, EVERY_PERMISSION
    for name, (client, permissions) in people.items():
        expected = _expected(page, is_let_in(page.entry, permissions))
        url, query = _page(route, page, made)
        with no_writes():
            assert knock(client, "GET", url, query) in expected, name
            if IS_FULL or name.endswith(EVERY_METHOD_FOR):
                assert knock(client, "HEAD", url, query) in expected, name
    assert not has_changed(before)


def _page(route: str, page: Page, made: Everything) -> tuple[str, dict[str, str]]:
    on = page if page.look is not None else page.acts[0]
    url = page_address(route, on, made) if isinstance(on, Page) else act_address(route, on, made)
    return url, filled_in(page.query, made)


def _expected(page: Page, is_in: bool) -> set[int]:
    if page.look is None:
        return {405} if is_in else {403, 405}
    return {page.answers} if is_in else {403}


@pytest.mark.parametrize("route", ROUTES)
def test_a_method_that_is_none_of_the_page_changes_nothing(
    route: str, made: Everything, clients: Clients, before: Stored
) -> None:
    page = PAGES[route]
    url, query = _page(route, page, made)
    for client, permissions in (
        (clients.staff(NONE), NONE),
        (clients.superuser, EVERY_PERMISSION),
    ):
        refused = {page.answers} if page.look == [NONE] else {403}
        allowed = HARMLESS if is_let_in(page.entry, permissions) else {*refused, 405}
        is_to_act = page.acts and permissions
        for method in METHODS[3 if is_to_act else 2 :]:
            body = query if method == "POST" else {"status": "ready", "post": "yes"}
            assert knock(client, method, url, body) in allowed, method
    assert not has_changed(before)


@pytest.mark.parametrize(
    ("route", "number"),
    [(route, number) for route in ROUTES for number in range(len(PAGES[route].acts))],
)
def test_an_act_is_done_for_those_who_may_and_for_nobody_else(
    route: str, number: int, made: Everything, clients: Clients, before: Stored
) -> None:
    act = PAGES[route].acts[number]
    url, body = act_address(route, act, made), filled_in(act.body, made)
    for name, permissions in telling_sets([act.needs]).items():
        if not is_let_in(act.needs, permissions):
            status = knock(clients.staff(permissions), "POST", url, body)
            assert status in act.refused, (act.name, name)
    assert not has_changed(before)
    allowed = [clients.staff(way) for way in act.needs]
    for client in (*allowed, clients.superuser):
        _acts(client, url, body, before, act)


def _acts(client: Client, url: str, body: dict, before: Stored, act: Act) -> None:
    with atomic():
        answer = client.post(url, body)
        assert answer.status_code == act.answers, (act.name, answer.content.decode()[:5000])
        assert has_changed(before), (act.name, "did nothing")
        set_rollback(True)
