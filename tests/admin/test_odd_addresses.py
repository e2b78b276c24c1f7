"""No address and no parameter causes an error, whatever it contains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db.transaction import atomic, set_rollback

from tests.admin.everything import Everything
from tests.admin.markup import Markup
from tests.admin.matrix.cells import act_address, filled_in, knock
from tests.admin.matrix.roles import IS_FULL
from tests.admin.matrix.table import ACTING, LOOKING, PAGES
from tests.admin.pages import some_variants, text_of, variants

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

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
TRIES = 6


@pytest.mark.parametrize("route", LOOKING)
def test_no_parameter_makes_an_error(route: str, plain: Everything) -> None:
    client = plain.rows["root"]
    url, query = next(variants(route, plain))
    for parameters in _odd(_names(text_of(client.get(url, query)), query), query):
        status = knock(client, "GET", f"{url}?{parameters}")
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
    # No text of PostgreSQL's holds it.
    for name in names if IS_FULL else names[len(names) % 3 :: 3]:
        yield f"{name}=a%00&{urlencode({each: query[each] for each in query if each != name})}"
    yield "".join(f"&{name}={RAW[0]}&{name}=2&{name}[]=3&{name}[a]=4" for name in names)


IDS = [
    "0", "-1", HUGE, "9223372036854775808", "x", "None", "\x00", "_00", "_ED_A0_80", "%00",
    "%ED%A0%80", "..", "a/b/c", "01900000-0000-7000-8000-000000000000", "💥", "\u0661", "_", "1_",
    "ffffffff-ffff-ffff-ffff-ffffffffffff", "'", "1;drop", " ", "%0a", "{}",
]  # fmt: skip


@pytest.mark.parametrize("route", [route for route in sorted(PAGES) if "<" in route])
def test_no_id_makes_an_error(route: str, plain: Everything) -> None:
    client = plain.rows["root"]
    for key in IDS if IS_FULL else IDS[len(route) % 4 :: 4]:
        url = "/admin/taskqueue/" + re.sub(r"<[^>]*>", lambda _, key=key: key, route)
        raw = url.replace("\x00", "%00").replace(" ", "%20")
        for method in ("get", "post", "head"):
            status = getattr(client, method)(raw).status_code
            assert status in {*FINE, 403, 405}, (method, url)


@pytest.mark.parametrize("route", LOOKING)
def test_other_methods_are_answered(route: str, plain: Everything) -> None:
    client = plain.rows["root"]
    for url, query in some_variants(route, plain, turn=len(route), of=4):
        seen = knock(client, "GET", url, query)
        assert knock(client, "HEAD", url, query) == seen, url
        assert client.options(url).status_code in (200, 302, 400, 403, 404, 405), url


@pytest.mark.parametrize("route", ACTING)
def test_no_posted_value_makes_an_error(route: str, plain: Everything) -> None:
    client = plain.rows["root"]
    for act in PAGES[route].acts:
        url, body = act_address(route, act, plain), filled_in(act.body, plain)
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
