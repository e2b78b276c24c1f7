"""An end user watches a task in a real browser, without a login; a real worker runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import expect
from tests.browser.test_watching import SETTINGS, is_not_reloaded, say
from tests.conftest import StartWorker
from tests.sample.worker_tasks import follow

pytestmark = [pytest.mark.slow, pytest.mark.urls("tests.browser.progress_urls")]


@pytest.mark.django_db(transaction=True)
def test_a_bar_moves_to_its_end_and_shows_nothing_else(
    page: Any, live_server: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    steps = tmp_path / "steps"
    say(steps, 10)
    task = follow.enqueue(str(steps))
    page.goto("/export/")
    page.evaluate("window.isNotReloaded = true")
    expect(page.locator("main")).to_contain_text("Waiting: it is next in line")
    start_worker("--concurrency", "1", settings=SETTINGS)
    bar = page.locator("main progress")
    expect(bar).to_have_attribute("value", "10")
    expect(page.locator("main")).to_contain_text("10 of 100 steps")
    say(steps, 70)
    expect(bar).to_have_attribute("value", "70")
    for hidden in (task.name, str(tmp_path), str(task.id)):
        assert hidden not in page.content()
    say(steps, 100)
    expect(page.locator("main")).to_contain_text("Finished")
    expect(bar).to_have_attribute("value", "100")
    assert "there" not in page.locator("main").inner_text()
    assert is_not_reloaded(page)
    assert page.context.cookies() == []


@pytest.mark.django_db(transaction=True)
def test_the_page_goes_on_to_the_result(
    page: Any, live_server: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    steps = tmp_path / "steps"
    say(steps, 50)
    follow.enqueue(str(steps))
    page.goto("/export/?redirect=/done/")
    start_worker("--concurrency", "1", settings=SETTINGS)
    expect(page.locator("main progress")).to_have_attribute("value", "50")
    say(steps, 100)
    page.wait_for_url("**/done/")
