"""The admin in a real browser, with what a real worker left behind."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from taskqueue.models import Task
from tests.browser import chromium
from tests.browser.chromium import await_rows, click_through
from tests.browser.lively.site import fill
from tests.conftest import Drain
from tests.sample.tasks import add, fail, log_in, talk

SECRET = "correct horse battery staple"
EVIL = "<script>document.title = 'gotcha'</script>"

pytestmark = pytest.mark.slow


def test_a_task_leads_to_its_lease_and_its_log_lines(
    page: Any, drain: Drain, tmp_path: Path
) -> None:
    secret, failure, talker = log_in.enqueue("ann", SECRET), fail.enqueue(EVIL), talk.enqueue(3)
    add.enqueue(1).cancel("not needed", by="ann")
    drain()
    User.objects.create_superuser("admin", password="admin")
    chromium.log_in(page)

    click_through(page, ".model-task a:has-text('Tasks')")
    await_rows(page, "#result_list tbody tr", 4)
    look(page, tmp_path, "tasks")
    click_through(page, ".taskqueue-statuses a:has-text('Failed')")
    assert "failed" in page.url
    await_rows(page, "#result_list tbody tr", 1)
    click_through(page, f"#result_list a[href*='{failure.id}']")
    await_rows(page, "#taskqueue-leases .taskqueue-attempt", 1)
    assert "ValueError" in page.inner_text("#taskqueue-leases")
    page.click("#taskqueue-leases summary")
    assert "Traceback (most recent call last)" in page.inner_text("#taskqueue-leases details")
    look(page, tmp_path, "failed-task")
    click_through(page, "#taskqueue-leases tbody a")
    assert "/lease/" in page.url
    assert EVIL in page.inner_text(".field-message")
    look(page, tmp_path, "lease")
    click_through(page, ".field-worker_link a")
    assert "/worker/?q=" in page.url
    await_rows(page, "#content tbody th a", 1)
    look(page, tmp_path, "workers")
    click_through(page, "#content tbody th a")
    assert "/worker/" in page.url
    look(page, tmp_path, "worker")

    page.goto(f"/admin/taskqueue/task/{talker.id}/change/")
    assert "said by a logger" in page.inner_text("#taskqueue-lines")
    look(page, tmp_path, "log-lines")
    click_through(page, "text=All log lines")
    await_rows(page, "#result_list tbody tr", 4)
    look(page, tmp_path, "lines")

    page.goto(f"/admin/taskqueue/task/{secret.id}/change/")
    assert "[redacted]" in page.inner_text("#taskqueue-arguments")
    assert SECRET not in page.content()
    look(page, tmp_path, "secret")
    assert "gotcha" not in page.title()
    for name in ("queue", "audit", "lease"):
        page.goto(f"/admin/taskqueue/{name}/")
        look(page, tmp_path, f"{name}-list")


def look(page: Any, directory: Path, name: str) -> None:
    """Keep a picture, in the directory TASKQUEUE_TEST_PICTURES where it is set."""
    directory = Path(os.environ.get("TASKQUEUE_TEST_PICTURES") or directory)
    page.screenshot(path=directory / f"{name}.png", full_page=True)


def test_a_long_word_of_an_error_stays_in_its_card_on_a_phone(admin_page: Any) -> None:
    word = "x" * 200
    task = Task.objects.create(
        name=word, queue_name=word[:100], status="failed", finished_at=timezone.now(),
        crash_delay=timedelta(seconds=1), error_class=word, error_message=word, attempt=1,
    )  # fmt: skip
    admin_page.set_viewport_size({"width": 390, "height": 740})
    admin_page.goto(f"/admin/taskqueue/task/{task.pk}/change/")
    wide = "(all) => all.filter((each) => each.scrollWidth > each.clientWidth).length"
    assert admin_page.eval_on_selector_all(".taskqueue-head, .taskqueue-head > *", wide) == 0


def test_rows_of_tasks_take_two_lines_on_a_phone_and_can_be_ticked(
    admin_page: Any, drain: Drain
) -> None:
    failed, succeeded = fail.enqueue("no"), add.enqueue(1)
    drain()
    admin_page.set_viewport_size({"width": 390, "height": 740})
    admin_page.goto("/admin/taskqueue/task/")
    rows = admin_page.locator("#result_list tbody tr")
    assert rows.count() == 2
    for row in rows.all():
        assert row.bounding_box()["height"] < 64
        assert row.locator(".taskqueue-preview").is_visible()
        row.locator("[type=checkbox]").check()
    for task, has_failed in ((failed, True), (succeeded, False)):
        row = rows.filter(has=admin_page.locator(f"a[href*='{task.id}']"))
        assert row.locator(".field-shown_error").is_visible() == has_failed


def test_a_change_stands_beside_its_figure_on_a_phone(admin_page: Any) -> None:
    fill(20)
    admin_page.set_viewport_size({"width": 390, "height": 740})
    admin_page.goto("/admin/taskqueue/performance/")
    cells = admin_page.locator("#taskqueue-performance tbody tr:first-child td").all()
    tops = [cell.bounding_box()["y"] for cell in cells]
    # Attempts; failures, p50 and p95 with their changes; what has none.
    assert tops[1] == tops[2] > tops[0]
    assert tops[3] == tops[4]
    assert tops[5] == tops[6]
