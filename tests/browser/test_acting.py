"""Tasks and queues are acted on in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from taskqueue.models import Operation, Queue, Task
from tests.browser.chromium import click_through, expect
from tests.conftest import Drain, StartWorker
from tests.sample.tasks import add

pytestmark = pytest.mark.slow
HEAD = "[data-refresh=taskqueue-head]"
SUBMIT = "#content form:not([method=dialog]) [type=submit]"
MANY = 130
NOTE = """button => {
  button.form.target = "_blank";
  const seen = [];
  new MutationObserver(() => {
    seen.push(button.disabled);
    button.dataset.disabled = seen.join(" ");
  }).observe(button, { attributeFilter: ["disabled"] });
}"""
"""Keep the page, and what becomes of its button."""


def test_a_failed_task_is_retried_with_other_arguments(
    admin_page: Any, drain: Drain, start_worker: StartWorker
) -> None:
    with override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False}):
        failed = add.enqueue("two", 3)  # type: ignore[arg-type]
    drain()
    page = admin_page
    page.goto(f"/admin/taskqueue/task/{failed.id}/change/")
    expect(page.locator(HEAD)).to_contain_text("TypeError")
    click_through(page, "text=Retry with other arguments")
    assert page.input_value("#id_arg_a") == "two"
    page.fill("#id_reason", "a number was meant")
    click_through(page, SUBMIT)
    expect(page.locator("#content .errorlist").first).to_be_visible()
    page.fill("#id_arg_a", "2")
    click_through(page, SUBMIT)
    expect(page.locator("#content")).to_contain_text('"two"')
    click_through(page, SUBMIT)
    expect(page.locator(".messagelist .success")).to_contain_text("enqueued")
    assert str(failed.id) not in page.url
    page.select_option("[data-refresh-seconds]", "2")
    start_worker("--concurrency", "1")
    expect(page.locator(HEAD)).to_contain_text("succeeded")
    expect(page.locator("[data-refresh=taskqueue-result]")).to_contain_text("5")
    again = Task.objects.exclude(id=failed.id).get()
    assert (again.args, again.return_value, str(again.retry_of_id)) == ([2, 3], 5, str(failed.id))


def test_a_button_that_is_pressed_twice_makes_one_task(
    admin_page: Any, transactional_db: None
) -> None:
    page = admin_page
    page.goto(f"/admin/taskqueue/task/add/?name={add.name}")
    page.fill("#id_arg_a", "1")
    page.fill("#id_arg_b", "2")
    page.dblclick(SUBMIT)
    expect(page.locator(HEAD)).to_be_visible()
    [made] = Task.objects.all()
    assert str(made.id) in page.url
    page.dblclick("button[value=duplicate]")
    expect(page.locator(HEAD)).not_to_contain_text(str(made.id))
    assert Task.objects.count() == 2
    # The button is given back where the page stays: here the answer goes to another one.
    page.goto(f"/admin/taskqueue/task/add/?name={add.name}")
    page.locator(SUBMIT).evaluate(NOTE)
    page.click(SUBMIT)
    expect(page.locator(SUBMIT)).to_have_attribute("data-disabled", "true false")


def test_a_queue_is_paused_and_resumed_from_the_dashboard(
    admin_page: Any, transactional_db: None
) -> None:
    Queue.objects.create(name="mail")
    page = admin_page
    page.goto("/admin/taskqueue/dashboard/")
    queue = page.locator("[data-refresh=taskqueue-queues] tbody tr")
    queue.get_by_role("button").click()
    page.fill("#taskqueue-ask-reason", "the provider is down")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator(".messagelist .success")).to_be_visible()
    expect(queue).to_contain_text("the provider is down")
    paused = Queue.objects.get(name="mail")
    assert (paused.paused_by, paused.pause_reason) == ("admin", "the provider is down")
    queue.get_by_role("button").click()
    click_through(page, "#taskqueue-ask [data-ask-yes]")
    expect(page.locator(".messagelist .success")).to_be_visible()
    expect(queue).not_to_contain_text("the provider is down")
    assert Queue.objects.get(name="mail").paused_at is None


def test_all_that_a_search_finds_is_retried_in_the_background(
    admin_page: Any, start_worker: StartWorker
) -> None:
    now = timezone.now()
    Task.objects.bulk_create(
        Task(
            name=f"tests.sample.tasks.{'noop' if number < MANY else 'mark'}", status="failed",
            finished_at=now, crash_delay=timedelta(seconds=10), error_class="builtins.OSError",
        )
        for number in range(MANY + 5)
    )  # fmt: skip
    page = admin_page
    page.goto("/admin/taskqueue/task/")
    page.keyboard.press("/")
    page.keyboard.type("status:failed name:tests.sample.tasks.noop")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.check("#action-toggle")
    page.click(".actions .question a")
    page.select_option("select[name=action]", "retry_many")
    click_through(page, "button[name=index]")
    expect(page.locator(".taskqueue-start-count")).to_contain_text(str(MANY))
    page.fill("#id_reason", "the disk has room again")
    click_through(page, ".taskqueue-confirm [type=submit]")
    assert "/operation/" in page.url
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.select_option("[data-refresh-seconds]", "2")
    page.evaluate("window.isNotReloaded = true")
    expect(page.locator("[data-refresh-root]")).to_contain_text("No workers are running")
    start_worker("--concurrency", "1")
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()
    expect(page.locator("[data-refresh-root]")).to_contain_text("finished")
    expect(page.locator("[data-refresh-root] progress")).to_have_attribute("value", "100")
    assert page.evaluate("window.isNotReloaded === true")
    done = Operation.objects.get()
    assert (done.done, done.requested_by) == (MANY, "admin")
    assert Task.objects.filter(status="failed").count() == 5
