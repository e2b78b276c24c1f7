"""An operator's questions to the admin in a real browser: each takes three clicks at most."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from taskqueue.models import Lease, Operation, Schedule, Task
from tests.browser.chromium import expect
from tests.browser.lively.rollups import SLOWED
from tests.browser.lively.site import Shop, fill
from tests.sharing_out import IS_FULL, SEED

pytestmark = pytest.mark.slow
MOST_CLICKS = 3
ENDED = 60
WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}
NOTICES = "[data-refresh=taskqueue-notices]"
RUNNING = "[data-refresh=taskqueue-running]"
QUEUES = "[data-refresh=taskqueue-queues]"


LANGUAGES = ("en", "zh-hans")
IN_CHINESE = {
    "Needs attention": "需要关注",
    "no running worker serves the queue video": "没有运行中的工作进程处理队列 video",
    "No running worker serves the queue video": "没有运行中的工作进程处理队列 video",
    "by ann": "由 ann 操作",
    "paused by ann": "由 ann 暂停",
    "shop.mail.send_newsletter is paused (lee, ": "shop.mail.send_newsletter 已暂停 (lee, ",
    "1 schedule is paused": "1 个定时计划已暂停",
    "Tasks": "任务",
    "Stop": "停止",
    "Failures": "失败",
    "Retry all": "全部重试",
    "Performance": "性能",
    "Since 2026.11.3": "自 2026.11.3 起",
    "Enqueue a task": "入队任务",
    "Enqueue": "入队",
    "Schedules": "定时计划",
    "Edit": "编辑",
    "Save": "保存",
}


class Operator:
    """Somebody at the dashboard, whose clicks are counted."""

    def __init__(self, page: Any, words: dict[str, str]) -> None:
        self.page, self.words = page, words
        self.clicks = 0
        page.goto("/admin/taskqueue/dashboard/")

    def click(self, what: str, within: str = "#content-start") -> None:
        """On the first link or button whose name begins so."""
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS, f"{what} would be click {self.clicks}"
        wanted = re.escape(self.words.get(what, what))
        named = re.compile(rf"^[^\w\u4e00-\u9fff]*{wanted}")
        links, buttons = (
            self.page.locator(within).get_by_role(role, name=named) for role in ("link", "button")
        )
        chosen = links.or_(buttons).first
        if chosen.get_attribute("href"):
            with self.page.expect_navigation():
                chosen.click()
        else:
            chosen.click()

    def confirm(self) -> None:
        """By the only button of the page that asks."""
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS
        self.page.locator("#content form:not([method=dialog]) [type=submit]").click()

    def sees(self, text: str, within: str = "#content-start") -> None:
        """That text, now or in a moment."""
        expect(self.page.locator(within)).to_contain_text(self.words.get(text, text))


@pytest.fixture(params=LANGUAGES if IS_FULL else [LANGUAGES[SEED % len(LANGUAGES)]])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """The language of the pages: with TASKQUEUE_FULL=1 each, else one that the seed chooses."""
    with override_settings(LANGUAGE_CODE=request.param):
        yield request.param


@pytest.fixture
def shop(admin_page: Any) -> Shop:
    return fill(ENDED)


@pytest.fixture
def operator(admin_page: Any, shop: Shop, language: str) -> Operator:
    return Operator(admin_page, IN_CHINESE if language == "zh-hans" else {})


def test_is_anything_wrong(operator: Operator) -> None:
    operator.sees("Needs attention")
    operator.sees("no running worker serves the queue video", NOTICES)
    assert operator.clicks == 0


def test_why_is_it_not_running(operator: Operator) -> None:
    waiting = Task.objects.filter(queue_name="video", status="ready").first()
    assert waiting is not None
    operator.click("Tasks", ".taskqueue-tabs")
    operator.page.fill("#searchbar", str(waiting.id))
    operator.page.keyboard.press("Enter")
    operator.page.wait_for_url(f"**/{waiting.id}/change/")
    operator.sees("No running worker serves the queue video")


def test_who_paused_this(operator: Operator) -> None:
    operator.sees("by ann", QUEUES)
    operator.sees("nordwind sends broken feeds since 9:40", QUEUES)
    operator.sees("shop.mail.send_newsletter is paused (lee, ", NOTICES)
    operator.sees("the issue has a wrong date", NOTICES)
    assert operator.clicks == 0
    operator.click("1 schedule is paused")
    operator.sees("paused by ann", "#result_list")


def test_stop_a_runaway(operator: Operator, shop: Shop) -> None:
    operator.click("Stop", f"{RUNNING} tr:has-text('{shop.report.name}')")
    operator.click("Stop", "#taskqueue-ask")
    expect(operator.page.locator(".messagelist .success")).to_be_visible()
    assert Lease.objects.get(task_id=shop.report.pk, status="running").stop_requested_by == "admin"


def test_retry_the_failures_of_one_kind_since_a_moment(operator: Operator, shop: Shop) -> None:
    operator.click("Failures", ".taskqueue-tabs")
    operator.page.fill("[name=since]", "7d")
    operator.page.keyboard.press("Enter")
    operator.page.wait_for_url("**since=7d**")
    operator.click("Retry all", f"#taskqueue-failures tr:has-text('{shop.failed.name}')")
    operator.sees(shop.failed.error_class)
    operator.confirm()
    expect(operator.page.locator(".messagelist .success")).to_be_visible()
    started = Operation.objects.get(verb="retry", requested_by="admin")
    chosen = {"status:failed", f"class:{shop.failed.error_class}", f"name:{shop.failed.name}"}
    assert chosen < {*started.query.split()}
    assert "failed_after:" in started.query


def test_the_performance_page_shows_what_got_slower_since_a_deploy(operator: Operator) -> None:
    operator.click("Performance", ".taskqueue-tabs")
    operator.click("Since 2026.11.3")
    slowest = "#taskqueue-performance tbody tr:first-child"
    operator.sees(SLOWED, slowest)
    operator.click(SLOWED, slowest)
    operator.sees("2026.11.3")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_enqueue_by_hand(operator: Operator, size: dict[str, int]) -> None:
    operator.page.set_viewport_size(size)
    operator.click("Enqueue a task")
    operator.click("tests.sample.tasks.add")
    before = Task.objects.count()
    operator.page.fill("#id_arg_a", "1")
    operator.page.fill("#id_arg_b", "2")
    operator.click("Enqueue")
    expect(operator.page.locator(".messagelist .success")).to_be_visible()
    assert Task.objects.count() == before + 1


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_edit_a_schedule_and_see_its_next_runs(operator: Operator, size: dict[str, int]) -> None:
    schedule = Schedule.objects.get(name="reindex the catalogue")
    operator.page.set_viewport_size(size)
    operator.click("Schedules", ".taskqueue-tabs")
    operator.click("Edit", f"#result_list tr:has-text('{schedule.name}')")
    operator.page.fill("#id_interval_0", "15")
    operator.sees(":15:00", ".taskqueue-preview .taskqueue-times")
    operator.click("Save")
    expect(operator.page.locator(".messagelist .success")).to_be_visible()
    operator.sees(":15:00", ".taskqueue-times")
    schedule.refresh_from_db()
    assert schedule.rule["interval"] == 900
