"""Pages bear a strict policy, forms bear tokens, and no address or parameter makes an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue.roles import VIEWER
from tests.admin.everything import Everything, everything
from tests.admin.markup import Markup
from tests.admin.matrix.cells import act_address, filled_in
from tests.admin.matrix.roles import IS_FULL
from tests.admin.matrix.table import PAGES
from tests.admin.pages import text_of, variants
from tests.csp import POLICY

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
STATIC, CATALOGUE = "/static/", "/admin/jsi18n/"
ROUTES = [route for route in sorted(PAGES) if PAGES[route].look]
ACTING = [route for route in sorted(PAGES) if PAGES[route].acts]


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """A row of each kind and state, and who looks at it."""
    with django_db_blocker.unblock(), atomic():
        rows = everything("plain")
        root = User.objects.create_superuser("root")
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.set(
            Permission.objects.filter(
                content_type__app_label="taskqueue", codename__in=VIEWER.permissions
            )
        )
        for user in (root, viewer):
            client = rows.rows[user.username] = Client()
            client.force_login(user)
        rows.rows["strict"] = Client(enforce_csrf_checks=True)
        rows.rows["strict"].force_login(root)
        yield rows
        set_rollback(True)


# What stands in a page


@pytest.mark.parametrize("route", ROUTES)
def test_a_page_bears_a_strict_policy(route: str, made: Everything) -> None:
    for url, query in variants(route, made):
        response = made.rows["root"].get(url, query)
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


@pytest.mark.parametrize("route", ROUTES)
def test_who_may_only_look_is_shown_nothing_to_do(route: str, made: Everything) -> None:
    for url, query in variants(route, made):
        response = made.rows["viewer"].get(url, query)
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
def test_a_post_without_a_token_is_refused(route: str, made: Everything) -> None:
    for act in PAGES[route].acts:
        body = filled_in(act.body, made)
        answer = made.rows["strict"].post(act_address(route, act, made), body)
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
def test_a_form_leads_to_no_other_site(route: str, made: Everything) -> None:
    client = made.rows["root"]
    for turn, act in enumerate(PAGES[route].acts):
        for place in ELSEWHERE if IS_FULL else ELSEWHERE[turn % 4 :: 4]:
            body = {**filled_in(act.body, made), "next": place, "_redirect": place}
            with atomic():
                answer = client.post(act_address(route, act, made), body)
                assert answer.status_code in (200, 302), (act.name, place)
                _check_target(answer.headers.get("Location", "/admin/"))
                if answer.status_code == 200:
                    assert Markup(text_of(answer)).violations == []
                set_rollback(True)


def _check_target(target: str) -> None:
    is_ours = re.match(r"/[^/\\]", target) or target.startswith("?")
    assert is_ours, target
    assert not set("\t\r\n\\") & set(target), target


# Odd addresses


HUGE = "9" * 31
VALUES = [
    "", "\x00", "a\x00b", HUGE, f"-{HUGE}", "-1", "0", "1e400", "nan", "inf", "\u0661\u0662",
    "a" * 5000, "'", '"', "%", "_", "\\", "a:b:c", "status:", ":", "args.:1", "[]", "{}",
    "0001-01-01", "9999-12-31T23:59:59+14:00", "after:9999-12-31", "before:0001-01-01",
    "18446744073709551616", "2" * 400, "None", "true", "../..", "\u202e", "💥",
    f"priority:{HUGE}", "id:x", 'name:"', "after:-1d", f"after:{HUGE}d", "args.a.b.c.d:e",
]  # fmt: skip
RAW = ["%ED%A0%80", "%FF%FE", "%C0%80", "%", "%zz", "%00", "a%00", "%F0%9F", "+", "%0d%0aA:b"]
NAMES = ["q", "p", "o", "e", "_to_field", "_popup", "_changelist_filters", "span"]
FORM = "application/x-www-form-urlencoded"
FINE = {200, 302, 304, 400, 404}
TRIES = 10


@pytest.mark.parametrize("route", ROUTES)
def test_no_parameter_makes_an_error(route: str, made: Everything) -> None:
    client = made.rows["root"]
    url, query = next(variants(route, made))
    for parameters in _odd(_names(text_of(client.get(url, query)), query), query):
        status = client.get(f"{url}?{parameters}").status_code
        assert status in FINE, (url, parameters)


def _names(html: str, query: dict[str, str]) -> list[str]:
    """What the page's own links and forms say in addresses, and what any page may be told."""
    found = Markup(html)
    links = re.findall(r"[?&](\w+)=", " ".join(found.links))
    fields = [name for form in found.forms if not form.is_post for name in form.fields]
    return sorted({*NAMES, *query, *links, *fields} - {""})


def _odd(names: list[str], query: dict[str, str]) -> Iterator[str]:
    """Each name with each value; in an ordinary run with some of them, each page with others."""
    values = [*RAW, *(quote(value, safe="") for value in VALUES)]
    pairs = [(name, value) for name in names for value in values]
    step = 1 if IS_FULL else len(pairs) // TRIES + 1
    for name, value in pairs[sum(map(len, names)) % step :: step]:
        rest = urlencode({key: each for key, each in query.items() if key != name})
        yield f"{name}={value}&{rest}"
    for name in names:  # No text of PostgreSQL's holds it.
        yield f"{name}=a%00&{urlencode({each: query[each] for each in query if each != name})}"
    yield "".join(f"&{name}={RAW[0]}&{name}=2&{name}[]=3&{name}[a]=4" for name in names)


IDS = [
    "0", "-1", HUGE, "9223372036854775808", "x", "None", "\x00", "_00", "_ED_A0_80", "%00",
    "%ED%A0%80", "..", "a/b/c", "01900000-0000-7000-8000-000000000000", "💥", "\u0661", "_", "1_",
    "ffffffff-ffff-ffff-ffff-ffffffffffff", "'", "1;drop", " ", "%0a", "{}",
]  # fmt: skip


@pytest.mark.parametrize("route", [route for route in sorted(PAGES) if "<" in route])
def test_no_id_makes_an_error(route: str, made: Everything) -> None:
    client = made.rows["root"]
    for key in IDS if IS_FULL else IDS[len(route) % 2 :: 2]:
        url = "/admin/taskqueue/" + re.sub(r"<[^>]*>", lambda _, key=key: key, route)
        raw = url.replace("\x00", "%00").replace(" ", "%20")
        for method in ("get", "post", "head"):
            status = getattr(client, method)(raw).status_code
            assert status in {*FINE, 403, 405}, (method, url)


@pytest.mark.parametrize("route", ROUTES)
def test_other_methods_are_answered(route: str, made: Everything) -> None:
    client = made.rows["root"]
    for url, query in variants(route, made):
        seen = client.get(url, query).status_code
        assert client.head(url, query).status_code == seen, url
        assert client.options(url).status_code in (200, 302, 400, 403, 404, 405), url


@pytest.mark.parametrize("route", ACTING)
def test_no_posted_value_makes_an_error(route: str, made: Everything) -> None:
    client = made.rows["root"]
    for act in PAGES[route].acts:
        url, body = act_address(route, act, made), filled_in(act.body, made)
        for name, value in _posted(body):
            others = urlencode({key: each for key, each in body.items() if key != name}, doseq=True)
            with atomic():
                answer = client.post(url, f"{others}&{name}={value}", content_type=FORM)
                assert answer.status_code in FINE, (act.name, name, value)
                set_rollback(True)


def _posted(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    names = sorted({*body, "reason", "next", "minutes", "ids"} - {"verb", "action", "confirmed"})
    values = [*RAW[:3], "", "%00", HUGE, "a" * 5000, "%5B1%5D", "nan", "1e999", quote("💥")]
    pairs = [(name, value) for name in names for value in values]
    step = 1 if IS_FULL else len(pairs) // TRIES + 1
    yield from pairs[len(names) % step :: step]
