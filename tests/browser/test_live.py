"""Pages in a real browser on a real ASGI server: they change at an event, not at the next poll."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test.utils import override_settings

from taskqueue import control
from taskqueue.models import Queue
from taskqueue.monitoring import streams
from tests.browser.asgi import asgi_served
from tests.browser.chromium import PATIENCE, expect
from tests.browser.conftest import let_in, opened_page
from tests.browser.test_dashboard import HIDE
from tests.events.conftest import _ended_hub  # noqa: F401
from tests.events.steps import number_all
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow
DASHBOARD = "/admin/taskqueue/dashboard/"
LIVE, CHOICE = "[data-refresh-live]", "[data-refresh-seconds]"
QUEUES = "[data-refresh=taskqueue-queues]"
HEAD = "[data-refresh=taskqueue-head]"
POLL_HOURLY = """() => {
  const choice = document.querySelector("[data-refresh-seconds]");
  choice.add(new Option("1 h", "3600"));
  choice.value = "3600";
  choice.dispatchEvent(new Event("change"));
}"""


@pytest.fixture
def asgi_server(transactional_db: None, settings: Any) -> Iterator[Any]:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    with asgi_served() as server:
        yield server


@pytest.fixture
def live_page(browser: Any, asgi_server: Any) -> Iterator[Any]:
    """A page of somebody who may do anything."""
    with opened_page(browser, asgi_server) as page:
        let_in(page, asgi_server)
        yield page


def open_live(page: Any, address: str) -> None:
    """Open a page that hears of changes, and asks for nothing by itself within an hour."""
    with page.expect_response(is_fragment):  # It asks as soon as its stream is open.
        page.goto(address)
        page.evaluate(POLL_HOURLY)
        expect(page.locator(LIVE)).to_have_count(1)


def is_fragment(answer: Any) -> bool:
    return bool(answer.request.headers.get("x-requested-with") == "taskqueue-refresh")


def pause(name: str) -> None:
    control.pause(name, reason=f"why {name} rests")
    number_all()


def test_the_dashboard_shows_each_change_without_a_poll(live_page: Any) -> None:
    for name in ("mail", "pictures"):
        Queue.objects.create(name=name)
    open_live(live_page, DASHBOARD)
    for name in ("mail", "pictures"):
        pause(name)
        expect(live_page.locator(QUEUES)).to_contain_text(f"why {name} rests")


def test_the_page_of_a_task_shows_its_end_without_a_poll(live_page: Any) -> None:
    task = noop.enqueue()
    open_live(live_page, f"/admin/taskqueue/task/{task.id}/change/")
    expect(live_page.locator(HEAD)).to_contain_text("ready")
    control.cancel(task.id)
    number_all()
    expect(live_page.locator(HEAD)).to_contain_text("cancelled")


def test_a_hidden_page_has_no_stream(live_page: Any) -> None:
    open_live(live_page, DASHBOARD)
    live_page.evaluate(HIDE, True)
    expect(live_page.locator(LIVE)).to_have_count(0)
    wait_until(lambda: not streams.OPEN._taken, timeout=60, what="the end of the stream")
    live_page.evaluate(HIDE, False)
    expect(live_page.locator(LIVE)).to_have_count(1)
    live_page.select_option(CHOICE, "0")
    expect(live_page.locator(LIVE)).to_have_count(0)


def test_a_page_whose_stream_is_refused_polls(browser: Any, asgi_server: Any) -> None:
    Queue.objects.create(name="mail")
    context = browser.new_context(base_url=asgi_server.url)  # Unwatched: it complains of the 503.
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    let_in(page, asgi_server)
    with override_settings(TASKQUEUE={"STREAMS": {"user": 0}}):
        with page.expect_response(lambda answer: "/stream/" in answer.url) as refused:
            page.goto(DASHBOARD)
        assert refused.value.status == 503
        page.select_option(CHOICE, "2")
        pause("mail")
        expect(page.locator(QUEUES)).to_contain_text("why mail rests")
        expect(page.locator(LIVE)).to_have_count(0)
    context.close()
