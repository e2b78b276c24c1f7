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

pytestmark = pytest.mark.slow
WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 360, "height": 740}
ENDED = 60
"""Fewer rows than the pictures show, for axe looks at each."""
ALIKE = ("dashboard-day", "dashboard-week", "task-searched")
"""Pages that differ from another one only in their figures."""


def test_axe_finds_nothing_and_no_page_is_wider_than_a_phone(admin_page: Any) -> None:
    page = admin_page
    shop = fill(ENDED)
    problems: list[str] = []
    for name, address in pages(shop).items():
        if name in ALIKE:
            continue
        problems += [f"{name}: {line}" for line in looked_at(page, address)]
    assert problems == []


def looked_at(page: Any, address: str) -> list[str]:
    """What is wrong with one page."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size(WIDE)
    page.goto(address)
    found = violations(page)
    page.set_viewport_size(NARROW)
    found += [f"narrow: {line}" for line in violations_but_colours(page)]
    width = page.evaluate("document.scrollingElement.scrollWidth")
    if width > NARROW["width"]:
        found.append(f"it is {width} wide on a phone")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(WIDE)
    page.reload()  # Colours that are on their way to others would be measured half way.
    return found + [f"dark: {line}" for line in violations(page, COLOURS)]


def test_what_is_left_out_is_wrong_with_pages_of_djangos_own(
    admin_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = admin_page
    users: Any = admin.site.get_model_admin(User)
    monkeypatch.setattr(users, "search_help_text", "By name.", raising=False)
    broken: dict[str, list[str]] = {}
    for address in ("/admin/auth/user/", "/admin/auth/"):
        page.goto(address)
        broken |= broken_rules(page)
    assert set(DJANGOS_OWN) <= set(broken)
    assert any(".breadcrumbs" in target for target in broken["link-in-text-block"])
    assert broken["label-title-only"] == ["#searchbar"]
