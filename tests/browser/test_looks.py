"""Links that look like buttons, and badges, read as they should in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.lively.site import fill

pytestmark = pytest.mark.slow

COLOUR = "(each) => getComputedStyle(each).color"


def colour(page: Any, selector: str) -> str:
    return str(page.locator(selector).first.evaluate(COLOUR))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_link_that_looks_like_a_button_has_the_colour_of_a_button(
    admin_page: Any, scheme: str
) -> None:
    shop = fill(20)
    admin_page.emulate_media(color_scheme=scheme)
    admin_page.goto(f"/admin/taskqueue/task/{shop.failed.pk}/change/")
    acts = ".taskqueue-head .taskqueue-acts"
    assert colour(admin_page, f"{acts} a:not(.taskqueue-grave)") == colour(
        admin_page, f"{acts} button:not(.taskqueue-grave)"
    )


def test_a_short_id_that_is_a_link_has_the_colour_of_a_link(admin_page: Any) -> None:
    fill(20)
    admin_page.goto("/admin/taskqueue/lease/")
    cell = "#result_list .field-short_task_link a"
    assert colour(admin_page, cell) == colour(admin_page, f"{cell} code")


def test_a_badge_beside_long_words_is_not_broken_on_a_phone(admin_page: Any) -> None:
    fill(20)
    admin_page.set_viewport_size({"width": 360, "height": 740})
    admin_page.goto("/admin/taskqueue/dashboard/")
    badges = admin_page.locator("[aria-labelledby=taskqueue-workflows-title] .taskqueue-badge")
    heights = [badge.bounding_box()["height"] for badge in badges.all()]
    assert len({*map(round, heights)}) == 1


def test_a_notice_has_the_whole_width_of_a_phone(admin_page: Any) -> None:
    fill(20)
    admin_page.set_viewport_size({"width": 360, "height": 740})
    admin_page.goto("/admin/taskqueue/dashboard/")
    notice = admin_page.locator(".taskqueue-notice:not([hidden])").first
    badge, said = (notice.locator(f"> span:nth-child({place})") for place in (1, 2))
    assert said.bounding_box()["y"] >= badge.bounding_box()["y"] + badge.bounding_box()["height"]
