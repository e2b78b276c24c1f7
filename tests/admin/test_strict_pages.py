"""Pages bear a strict policy, forms bear tokens and lead to no other site."""

from __future__ import annotations

import re

import pytest
from django.contrib.staticfiles import finders
from django.db.transaction import atomic, set_rollback

from tests.admin.everything import Everything
from tests.admin.markup import Markup
from tests.admin.matrix.cells import act_address, filled_in
from tests.admin.matrix.roles import IS_FULL
from tests.admin.matrix.table import ACTING, LOOKING, PAGES
from tests.admin.pages import text_of, variants
from tests.csp import POLICY

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
STATIC, CATALOGUE = "/static/", "/admin/jsi18n/"


# What stands in a page


@pytest.mark.parametrize("route", LOOKING)
def test_a_page_bears_a_strict_policy(route: str, plain: Everything) -> None:
    for url, query in variants(route, plain):
        response = plain.rows["root"].get(url, query)
        assert response.headers["Content-Security-Policy"] == POLICY
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            continue
        found = Markup(text_of(response))
        assert found.violations == [], (url, query)
        _check_assets(found.assets)
        for form in found.forms:
            if form.is_post:
                assert form.fields.get("csrfmiddlewaretoken"), (url, form)


def _check_assets(assets: list[str]) -> None:
    """Each is a file that is served from here."""
    for asset in assets:
        if not asset.startswith("data:image/") and asset != CATALOGUE:
            assert asset.startswith(STATIC), asset
            assert finders.find(asset.removeprefix(STATIC).partition("?")[0]), asset


@pytest.mark.parametrize("route", LOOKING)
def test_who_may_only_look_is_shown_nothing_to_do(route: str, plain: Everything) -> None:
    for url, query in variants(route, plain):
        response = plain.rows["viewer"].get(url, query)
        if response.status_code != 200 or response.streaming:
            continue
        found = Markup(text_of(response))
        acts = re.compile(r"/(act|edit|add|delete|start|cancel)/")
        assert [link for link in found.links if acts.search(link)] == [], url
        assert not found.names & {"verb", "action", "confirmed", "_save", "_selected_action"}, url
        shown = [form.attributes.get("action", "") for form in found.forms]
        assert [action for action in shown if acts.search(action)] == [], url


# Forgery and redirects


@pytest.mark.parametrize("route", ACTING)
def test_a_post_without_a_token_is_refused(route: str, plain: Everything) -> None:
    for act in PAGES[route].acts:
        body = filled_in(act.body, plain)
        answer = plain.rows["strict"].post(act_address(route, act, plain), body)
        assert answer.status_code == 403, act.name
        assert "CSRF" in text_of(answer)


ELSEWHERE = [
    "//evil.example", "http://evil.example", "https:evil.example", "/\\evil.example",
    "\\\\evil.example", "\\/evil.example", "///evil.example", "javascript:alert(1)",
    "/\t/evil.example", "//evil.example\\@testserver", "http:///evil.example", " //evil.example",
    "/%09/evil.example\n//x",
    "data:text/html,x", "//testserver@evil.example", "evil.example", "\x00//evil.example",
]  # fmt: skip


@pytest.mark.parametrize("route", ACTING)
def test_a_form_leads_to_no_other_site(route: str, plain: Everything) -> None:
    client = plain.rows["root"]
    for turn, act in enumerate(PAGES[route].acts):
        for place in ELSEWHERE if IS_FULL else ELSEWHERE[turn % 4 :: 4]:
            body = {**filled_in(act.body, plain), "next": place, "_redirect": place}
            with atomic():
                answer = client.post(act_address(route, act, plain), body)
                assert answer.status_code in (200, 302), (act.name, place)
                _check_target(answer.headers.get("Location", "/admin/"))
                if answer.status_code == 200:
                    assert Markup(text_of(answer)).violations == []
                set_rollback(True)


def _check_target(target: str) -> None:
    is_ours = re.match(r"/[^/\\]", target) or target.startswith("?")
    assert is_ours, target
    assert not set("\t\r\n\\") & set(target), target
