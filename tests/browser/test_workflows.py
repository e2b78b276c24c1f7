"""A failed workflow is found, understood and retried by clicks alone; a real worker runs it.

With TASKQUEUE_TEST_PICTURES=folder, pictures of the way are kept there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Audit
from tests.browser.chromium import click_through, expect
from tests.browser.test_acting import SUBMIT
from tests.browser.test_watching import is_not_reloaded, refresh_every_two_seconds
from tests.conftest import StartWorker
from tests.sample.workflow_tasks import count_all_words

pytestmark = pytest.mark.slow
HEAD, GRAPH = "[data-refresh=taskqueue-head]", "[data-refresh=taskqueue-graph]"
STEPS, CHOSEN = "[data-refresh=taskqueue-steps]", "#taskqueue-members"
PICTURES = os.environ.get("TASKQUEUE_TEST_PICTURES", "")


def keep_picture(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def retry(page: Any, reason: str, path: Path) -> None:
    """On the form of the verb. The workflow runs until its page is watched."""
    held = path.with_name(f"{path.name}.held")
    held.touch()
    page.fill("#taskqueue-reason", reason)
    keep_picture(page, "5-form")
    click_through(page, SUBMIT)
    expect(page.locator(".messagelist .success")).to_contain_text("runs again")
    refresh_every_two_seconds(page)
    keep_picture(page, "6-retried")
    held.unlink()


def test_a_failed_step_is_found_from_the_dashboard_and_retried_to_the_end(
    admin_page: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    run = count_all_words.enqueue(str(path))
    start_worker("--concurrency", "2")
    page = admin_page
    page.goto("/admin/taskqueue/dashboard/")
    refresh_every_two_seconds(page)
    failures = page.locator("[data-refresh=taskqueue-failures]")
    expect(failures).to_contain_text("FileNotFoundError")
    keep_picture(page, "1-dashboard")
    with page.expect_navigation():
        failures.locator("a[href*='/task/'][href$='/change/']").click()
    expect(page.locator("#content")).to_contain_text("Traceback")
    keep_picture(page, "2-task")
    click_through(page, "a[href*='/workflow/'][href*='/change/']")
    expect(page.locator(HEAD)).to_contain_text("No such file or directory")
    expect(page.locator(f"{GRAPH} .tq-cancelled")).to_have_count(3)  # One is in the legend.
    keep_picture(page, "3-workflow")
    page.locator(f"{GRAPH} a").filter(has_text="read").click()
    expect(page.locator(CHOSEN)).to_contain_text("Tasks of read")
    keep_picture(page, "4-step")
    path.write_text("one two\nthree\n" * 3)
    click_through(page, f"{CHOSEN} >> text=Retry from this step")
    expect(page.locator("#taskqueue-from_step")).to_have_value("read")
    retry(page, "the file is there now", path)
    expect(page.locator(HEAD)).to_contain_text("succeeded")
    expect(page.locator(f"{GRAPH} .tq-node.tq-succeeded")).to_have_count(3)
    expect(page.locator("#content")).to_contain_text("the file is there now")
    assert is_not_reloaded(page)
    keep_picture(page, "7-finished")
    run.refresh()
    assert run.return_value == 9
    entry = Audit.objects.get(subject=str(run.id))
    assert (entry.verb, entry.detail) == ("retry", "from step read")


def test_a_failed_workflow_is_found_in_the_list_and_retried(
    admin_page: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    run = count_all_words.enqueue(str(path))
    start_worker("--concurrency", "2")
    assert run.wait(60).status == "failed"
    page = admin_page
    page.goto("/admin/")
    click_through(page, "#content a[href='/admin/taskqueue/workflow/']")
    click_through(page, "#changelist-filter a[href*='failed']")
    keep_picture(page, "list-1-failed")
    click_through(page, "#result_list .field-failed a")
    expect(page.locator(CHOSEN)).to_contain_text("Tasks of read")
    click_through(page, f"{STEPS} nav a[href*='status=cancelled']")
    expect(page.locator(f"{STEPS} tbody tr")).to_have_count(2)
    path.write_text("one two\n")
    click_through(page, f"{HEAD} >> text=Retry…")
    expect(page.locator("#taskqueue-from_step")).to_have_value("")
    retry(page, "mended", path)
    expect(page.locator(HEAD)).to_contain_text("succeeded")
    assert is_not_reloaded(page)
    run.refresh()
    assert run.return_value == 2
