"""Every page of the admin in Simplified Chinese, and in English for those who ask for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.transaction import atomic, set_rollback
from django.test import Client
from django.utils.translation import deactivate, override

from taskqueue import schedules
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.models import Schedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule
from tests.admin.everything import Everything, everything
from tests.admin.leftovers import english_in
from tests.admin.matrix.table import PAGES
from tests.admin.pages import text_of, variants
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROUTES = [route for route in sorted(PAGES) if PAGES[route].look]
FULL_OF_NAMES = (
    "task/add/", "schedule/add/", "schedule/<int:object_id>/edit/",
    "schedule/<int:object_id>/run/", "task/export/",
    "task/<uuid:object_id>/edit/<slug:what>/",
    "operation/start/",
    "alertrule/<path:object_id>/change/",
    "alertrule/<int:object_id>/edit/",
)  # fmt: skip
"""Pages with the project's own docstrings and values of options, and what is no page."""
HISTORY = "history/"
"""Django's own page: it calls a row what its model does, in the words of the code."""
ROW_TITLES = {"audit", "lease", "occurrence", "operation"}
"""Of these Django's own page of one row is called what its model says, too."""
COMMANDS = "dashboard/doctor/"
"""Its sentences name commands and statements, and one is the version of the database alone."""


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """Rows whose names are Chinese."""
    with django_db_blocker.unblock(), atomic():
        rows = everything("甲")
        rows.rows["user"] = User.objects.create_superuser("甲")
        yield rows
        set_rollback(True)


@pytest.fixture
def ask_in(made: Everything, settings: Any) -> Iterator[Any]:
    """A client of somebody who may see everything, and whose browser wants that language."""
    before = settings.MIDDLEWARE.index("django.middleware.common.CommonMiddleware")
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:before],
        "django.middleware.locale.LocaleMiddleware",
        *settings.MIDDLEWARE[before:],
    ]

    def client_of(language: str) -> Client:
        client = Client(headers={"accept-language": language})
        client.force_login(made.rows["user"])
        return client

    yield client_of
    deactivate()  # The middleware leaves the thread in the language of its last request.


@pytest.mark.parametrize("route", ROUTES)
def test_no_english_is_left_in_a_page(route: str, made: Everything, ask_in: Any) -> None:
    if route in FULL_OF_NAMES or route.endswith(HISTORY):
        _is_chinese(route, made, ask_in)
        return
    for url, query in variants(route, made):
        response = ask_in("zh-CN,zh;q=0.9").get(url, query)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            left = english_in(text_of(response))
            if route.partition("/")[0] in ROW_TITLES and "object_id" in route:
                left = {text for text in left if not _is_title(text)}
            if route == COMMANDS:
                left = {
                    text for text in left if not re.search(r"[\u4e00-\u9fff]|^\w+ [\d.]+$", text)
                }
            assert left == set(), (url, query)


def _is_title(text: str) -> bool:
    is_moment = re.match(r"\d+ at \d{4}-", text) is not None
    return is_moment or text.startswith(("attempt ", "› ", "retry ")) or " | " in text


def _is_chinese(route: str, made: Everything, ask_in: Any) -> None:
    for url, query in variants(route, made):
        response = ask_in("zh-hans").get(url, query)
        # A schedule that nobody knows how to run leads back to its own page.
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if is_page and response.status_code == 200:
            assert 'lang="zh-hans"' in text_of(response)


def test_pages_have_chinese_headings_ways_and_buttons(made: Everything, ask_in: Any) -> None:
    client = ask_in("zh-CN")
    dashboard = text_of(client.get("/admin/taskqueue/dashboard/"))
    for words in (
        "仪表盘",
        "最近失败",
        "正在运行",
        "即将触发的定时计划",
        "工作进程",
        "暂停",
        "恢复",
    ):
        assert words in dashboard
    tasks = text_of(client.get("/admin/taskqueue/task/"))
    for words in ("任务", "搜索任务", "等待重试", "已取消", "导出"):
        assert words in tasks
    failed = text_of(client.get(f"/admin/taskqueue/task/{made.tasks['failed'].pk}/change/"))
    for words in ("时间线", "选项与限制", "第 4 次尝试失败", ">重试</button>", "以其他参数重试…"):
        assert words in failed


def test_a_request_for_english_gets_english(made: Everything, ask_in: Any) -> None:
    page = text_of(ask_in("en-GB,en;q=0.8,zh;q=0.5").get("/admin/taskqueue/dashboard/"))
    assert "Latest failures" in page
    assert "最近失败" not in page


def test_addresses_keep_the_values_of_statuses(made: Everything, ask_in: Any) -> None:
    page = text_of(ask_in("zh-hans").get("/admin/taskqueue/operation/"))
    assert "?status__exact=finished" in page
    assert ">已完成</a>" in page


NINE = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Every(seconds=90), "每 1 分钟 30 秒"),
        (Every(days=1, hours=2, start=NINE), "每 1 天 2 小时，自 2026-12-01 09:00:00 UTC 起"),
        (Every(hours=1, end=NINE), "每 1 小时，至 2026-12-01 09:00:00 UTC 止"),
        (AfterEnd(seconds=1.5), "上次结束后 1.5 秒"),
        (Once(NINE), "仅一次，2026-12-01 09:00:00 UTC"),
        (Cron("0 6 * * mon-fri"), "在 06:00，星期一到星期五（UTC）"),
        (
            Cron("0 9 * * tue,thu", tz="Europe/Berlin"),
            "在 09:00，仅在星期二和星期四（Europe/Berlin）",
        ),
    ],
)
def test_rules_are_said_in_the_users_language(rule: Rule, words: str) -> None:
    schedule = Schedule(rule=rule.as_json())
    with override("zh-hans"):
        assert rule_words(schedule) == words
    with override("en"):
        assert rule_words(schedule) == rule.text


def test_a_window_past_midnight_is_said_with_its_days() -> None:
    rule = DailyWindow(
        first=time(22), last=time(2), every=timedelta(minutes=5), days=["mon", "tue"], tz="UTC"
    )
    schedules.create("night", noop, rule, by="ann")
    with override("zh-hans"):
        words = rule_words(Schedule.objects.get(name="night"))
    assert words == "星期一、星期二 22:00 至次日 02:00，每 5 分钟（UTC）"


def test_a_rule_that_cannot_be_read_says_so_in_any_language() -> None:
    with override("zh-hans"):
        assert "cannot be read" in rule_words(Schedule(rule={"kind": "gone"}))
