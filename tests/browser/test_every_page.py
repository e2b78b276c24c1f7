"""Every page in a real browser: axe finds nothing, light or dark, wide or on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User

from tests.browser.accessibility import (
    COLOURS,
    DJANGOS_OWN,
    broken_rules,
    violations,
    violations_but_colours,
)
from tests.browser.lively.site import fill
from tests.browser.pages import pages
from tests.sharing_out import IS_FULL

pytestmark = pytest.mark.slow
WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 360, "height": 740}
TABLET = {"width": 800, "height": 1000}
ENDED = 60
"""Fewer rows than the pictures show, for axe looks at each."""
ALIKE = ("dashboard-day", "dashboard-week", "task-searched")
"""Pages that differ from another one only in their figures."""


def test_no_page_complains_or_is_wider_than_a_phone(admin_page: Any) -> None:
    page = admin_page
    page.set_viewport_size(NARROW)
    widths = {}
    for name, address in pages(fill(ENDED)).items():
        page.goto(address)
        widths[name] = page.evaluate("document.scrollingElement.scrollWidth")
    assert {name: width for name, width in widths.items() if width > NARROW["width"]} == {}


COVERED = """() => {
    const boxes = (selector) => [...document.querySelectorAll(selector)].map(
        (element) => element.getBoundingClientRect()
    );
    const meet = (a, b) => a.left < b.right && b.left < a.right
        && a.top < b.bottom && b.top < a.bottom;
    return boxes(".breadcrumbs, .taskqueue-tabs a").some(
        (link) => boxes(".object-tools a").some((button) => meet(link, button))
    );
}"""


def test_no_button_of_djangos_lies_upon_links(admin_page: Any) -> None:
    addresses = pages(fill(ENDED))
    names = ("schedule-one", "schedule-paused", "schedule-edit", "schedule", "task", "lease-one")
    covered = []
    for size in (WIDE, TABLET, NARROW):
        admin_page.set_viewport_size(size)
        for name in names:
            admin_page.goto(addresses[name])
            covered += [(name, size["width"])] if admin_page.evaluate(COVERED) else []
    assert covered == []


def test_axe_finds_nothing_wrong_with_any_page(lenient_page: Any) -> None:
    problems: list[str] = []
    different = [each for each in pages(fill(ENDED)).items() if each[0] not in ALIKE]
    for name, address in different if IS_FULL else different[::3]:
        problems += [f"{name}: {line}" for line in looked_at(lenient_page, address)]
    assert problems == []


def looked_at(page: Any, address: str) -> list[str]:
    """What is wrong with one page."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size(WIDE)
    page.goto(address)
    found = violations(page)
    page.set_viewport_size(NARROW)
    found += [f"narrow: {line}" for line in violations_but_colours(page)]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(WIDE)
    page.reload()  # Colours that are on their way to others would be measured half way.
    return found + [f"dark: {line}" for line in violations(page, COLOURS)]


def test_what_is_left_out_is_wrong_with_pages_of_djangos_own(
    lenient_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: Any = admin.site.get_model_admin(User)
    monkeypatch.setattr(users, "search_help_text", "By name.", raising=False)
    broken: dict[str, list[str]] = {}
    for address in ("/admin/auth/user/", "/admin/auth/"):
        lenient_page.goto(address)
        broken |= broken_rules(lenient_page)
    assert set(DJANGOS_OWN) <= set(broken)
    assert any(".breadcrumbs" in target for target in broken["link-in-text-block"])
    assert broken["label-title-only"] == ["#searchbar"]
