"""Tasks that run are watched in a real browser, and stopped there; real workers run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Task
from tests.browser.chromium import click_through, expect
from tests.conftest import StartWorker
from tests.sample.worker_tasks import follow

pytestmark = pytest.mark.slow
DASHBOARD = "/admin/taskqueue/dashboard/"
SETTINGS = {"PING_INTERVAL": 0.2}
PROGRESS = "[data-refresh=taskqueue-running] progress"


def say(path: Path, percent: int) -> None:
    """Let the task go so far; it must never find the file half written."""
    draft = path.with_suffix(".draft")
    draft.write_text(str(percent))
    draft.rename(path)


def refresh_every_two_seconds(page: Any) -> None:
    """Also where the page is left for another."""
    page.select_option("[data-refresh-seconds]", "2")
    page.evaluate("window.isNotReloaded = true")


def is_not_reloaded(page: Any) -> bool:
    return page.evaluate("window.isNotReloaded === true")


def test_a_running_task_is_watched_to_its_end(
    admin_page: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    steps = tmp_path / "steps"
    say(steps, 10)
    task = follow.enqueue(str(steps))
    start_worker("--concurrency", "1", settings=SETTINGS)
    page = admin_page
    page.goto(DASHBOARD)
    refresh_every_two_seconds(page)
    expect(page.locator(PROGRESS)).to_have_attribute("value", "10")
    say(steps, 70)
    expect(page.locator(PROGRESS)).to_have_attribute("value", "70")
    expect(page.locator("[data-refresh=taskqueue-running]")).to_contain_text("70 of 100 steps")
    assert is_not_reloaded(page)

    click_through(page, "[data-refresh=taskqueue-running] th a")
    assert f"/task/{task.id}/change/" in page.url
    assert page.input_value("[data-refresh-seconds]") == "2"
    page.evaluate("window.isNotReloaded = true")
    expect(page.locator("[data-refresh=taskqueue-head]")).to_contain_text("70 of 100 steps")
    say(steps, 100)
    expect(page.locator("[data-refresh=taskqueue-head]")).to_contain_text("succeeded")
    expect(page.locator("[data-refresh=taskqueue-result]")).to_contain_text("there")
    assert is_not_reloaded(page)


def test_a_running_task_is_stopped_with_a_reason(
    admin_page: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    steps = tmp_path / "steps"
    say(steps, 40)
    task = follow.enqueue(str(steps))
    start_worker("--concurrency", "1", settings=SETTINGS)
    page = admin_page
    page.goto(DASHBOARD)
    refresh_every_two_seconds(page)
    page.click("[data-refresh=taskqueue-running] button:text-is('Stop')")
    page.fill("#taskqueue-ask-reason", "it takes <b>too long</b>")
    click_through(page, "#taskqueue-ask [data-ask-yes]")
    expect(page.locator(".messagelist")).to_contain_text("stop")
    expect(page.locator("[data-refresh=taskqueue-running]")).to_contain_text("Nothing is running")
    page.goto(f"/admin/taskqueue/task/{task.id}/change/")
    expect(page.locator("[data-refresh=taskqueue-head]")).to_contain_text("cancelled")
    expect(page.locator("#content")).to_contain_text("it takes <b>too long</b>")
    assert Task.objects.get().status == "cancelled"
