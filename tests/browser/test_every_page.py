"""Every page in a real browser: axe finds nothing, whatever its colours, width and language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import reverse

from taskqueue import Every, schedules
from taskqueue.models import Schedule
from tests.browser.accessibility import DJANGOS_OWN, broken_rules, violations
from tests.browser.lively.site import fill
from tests.browser.pages import pages
from tests.csp import StrictPolicy
from tests.sample import tasks
from tests.sharing_out import IS_FULL, SEED

pytestmark = pytest.mark.slow
WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 360, "height": 740}
TABLET, PHONE = {"width": 800, "height": 1000}, {"width": 390, "height": 844}
ENDED = 60
"""Fewer rows than the pictures show, for axe looks at each."""
ALIKE = ("dashboard-day", "dashboard-week", "task-searched")
"""Pages that differ from another one only in their figures."""
LOOKS = tuple(product(("light", "dark"), (WIDE, PHONE), ("en", "zh-hans")))
"""How axe sees a page: with TASKQUEUE_FULL=1 in all of these ways. Else it sees every other page in
one of them, by turns; the seed chooses which."""
RUNS = (
    {f"{scheme}-{size['width']}-{language}": [(scheme, size, language)]
     for scheme, size, language in LOOKS}
    if IS_FULL else {"by-turns": LOOKS}
)  # fmt: skip


@pytest.fixture
def reporting_page(admin_page: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A page that complains of what the policy forbids, and still does it: axe styles elements."""
    monkeypatch.setattr(StrictPolicy, "header", f"{StrictPolicy.header}-Report-Only")
    return admin_page


def test_a_page_that_reports_what_the_policy_forbids_complains_of_it(
    reporting_page: Any, complaints: list[str]
) -> None:
    reporting_page.goto(reverse("admin:index"))
    assert complaints == []
    reporting_page.evaluate("document.body.setAttribute('style', 'color: red')")
    assert any("inline style violates" in each for each in complaints)
    assert reporting_page.evaluate("document.body.style.color") == "red"
    complaints.clear()


@pytest.mark.parametrize("looks", RUNS.values(), ids=RUNS)
def test_no_page_complains_is_wider_than_a_phone_or_has_what_axe_finds(
    reporting_page: Any, complaints: list[str], looks: Sequence[tuple[str, Any, str]]
) -> None:
    page, widths = reporting_page, {}
    problems: list[str] = []
    for turn, (name, address) in enumerate(pages(fill(ENDED)).items(), SEED):
        scheme, size, language = looks[turn // 2 % len(looks)]
        with override_settings(LANGUAGE_CODE=language):
            widths[name] = opened(page, address, scheme)
            problems += complaints
            assert page.get_attribute("html", "lang") == language
            if (IS_FULL or turn % 2 == 0) and name not in ALIKE:
                page.set_viewport_size(size)
                where = f"{name}, {scheme}, {size['width']}, {language}"
                problems += [f"{where}: {line}" for line in violations(page)]
            complaints.clear()
    assert {name: width for name, width in widths.items() if width > NARROW["width"]} == {}
    assert not problems, "\n".join(problems)


def opened(page: Any, address: str, scheme: str) -> int:
    """Open the page on a phone, and return its width.

    A scheme of colours is there from the beginning: colours that are on their way to others would
    be measured half way.
    """
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size(NARROW)
    page.goto(address)
    return int(page.evaluate("document.scrollingElement.scrollWidth"))


def test_the_state_of_an_overdue_schedule_fits_on_a_phone(admin_page: Any) -> None:
    schedule = schedules.create("feeds", tasks.add, Every(hours=1), args=[1])
    hour_ago = schedule.next_at - timedelta(hours=1, minutes=2)
    Schedule.objects.update(next_at=hour_ago, served_until=hour_ago)
    width = opened(
        admin_page, reverse("admin:taskqueue_schedule_change", args=[schedule.pk]), "light"
    )
    assert "overdue: no worker serves it" in admin_page.inner_text("#content")
    assert width <= NARROW["width"]


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
    for name in names:
        admin_page.goto(addresses[name])
        for size in (WIDE, TABLET, NARROW):
            admin_page.set_viewport_size(size)
            covered += [(name, size["width"])] if admin_page.evaluate(COVERED) else []
    assert covered == []


def test_the_ignored_rules_are_broken_by_djangos_own_pages(
    admin_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: Any = admin.site.get_model_admin(User)
    monkeypatch.setattr(users, "search_help_text", "By name.", raising=False)
    admin_page.goto("/admin/auth/")
    links = broken_rules(admin_page)["link-in-text-block"]
    assert any(".breadcrumbs" in target for target in links)
    admin_page.set_viewport_size(NARROW)
    admin_page.goto("/admin/auth/user/?q=nobody")
    broken = broken_rules(admin_page)
    assert set(DJANGOS_OWN) == set(broken)
    assert any('a[href="?"]' in target for target in broken["link-in-text-block"])
    assert broken["label-title-only"] == ["#searchbar"]
