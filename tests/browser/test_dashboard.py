"""The dashboard's live refresh, its keys and its spans in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import Queue
from tests.browser.chromium import expect
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.slow
DASHBOARD = "/admin/taskqueue/dashboard/"
READY = ".taskqueue-count--ready .taskqueue-figure"
CHOICE = "[data-refresh-seconds]"
STATUS = "[data-refresh-status]"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Asked:
    """How often the page has asked for what is new."""

    def __init__(self, page: Any) -> None:
        self.count = 0
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        self.count += request.headers.get("x-requested-with") == "taskqueue-refresh"


def test_it_refreshes_itself_unless_it_is_hidden_or_in_use(admin_page: Any) -> None:
    Queue.objects.create(name="mail")
    page = admin_page
    page.clock.install()
    page.goto(DASHBOARD)
    asked = Asked(page)
    expect(page.locator(READY)).to_have_text("0")
    noop.enqueue()
    page.clock.run_for(5_000)
    expect(page.locator(READY)).to_have_text("1")

    page.evaluate(HIDE, True)
    before = asked.count
    page.clock.run_for(60_000)
    assert asked.count == before
    add.enqueue(1)
    page.evaluate(HIDE, False)
    expect(page.locator(READY)).to_have_text("2")

    page.click("[data-refresh=taskqueue-queues] button")
    before = asked.count
    page.clock.run_for(20_000)
    expect(page.locator(STATUS)).to_contain_text("Paused")
    assert asked.count == before
    page.click("#taskqueue-ask [data-ask-no]")
    noop.enqueue()
    page.clock.run_for(5_000)
    expect(page.locator(READY)).to_have_text("3")


def test_how_often_it_refreshes_is_remembered(admin_page: Any) -> None:
    page = admin_page
    page.clock.install()
    page.goto(DASHBOARD)
    page.select_option(CHOICE, "0")
    expect(page.locator(STATUS)).to_have_text("Automatic refresh is off")
    page.reload()
    expect(page.locator(CHOICE)).to_have_value("0")
    asked = Asked(page)
    page.clock.run_for(60_000)
    assert asked.count == 0
    with page.expect_response(lambda answer: answer.request.headers.get("x-requested-with")) as it:
        page.select_option(CHOICE, "2")
        page.clock.run_for(2_000)
    assert it.value.status in (200, 304)


def test_keys_lead_everywhere(admin_page: Any) -> None:
    page = admin_page
    page.clock.install()
    page.goto(DASHBOARD)
    page.keyboard.press("?")
    expect(page.locator("#taskqueue-keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#taskqueue-keyboard")).to_be_hidden()
    # By its clock the page gets the two at one moment, however long they take.
    page.clock.pause_at(page.evaluate("Date.now() + 60_000"))
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/taskqueue/task/")
    page.keyboard.press("/")
    expect(page.locator("#searchbar")).to_be_focused()
    page.keyboard.type("?g")
    expect(page.locator("#searchbar")).to_have_value("?g")
    expect(page.locator("#taskqueue-keyboard")).to_be_hidden()


def test_charts_look_back_on_an_hour_a_day_or_a_week(admin_page: Any) -> None:
    page = admin_page
    page.goto(DASHBOARD)
    charts = page.locator("[data-refresh=taskqueue-charts]")
    for number, span in ((1, "day"), (2, "week"), (0, "hour")):
        charts.locator("a[href*='span=']").nth(number).click()
        page.wait_for_url(f"**span={span}**")
        expect(charts.locator("a[aria-current]")).to_have_count(1)
        expect(charts.locator("a[href*='span=']").nth(number)).to_have_attribute(
            "aria-current", "page"
        )
