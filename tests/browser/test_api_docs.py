"""The page of the API's documentation, in a browser that heeds a strict policy."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import Queue

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_the_api_can_be_read_and_tried_out_under_a_strict_policy(
    admin_page: Any, live_server: Any
) -> None:
    page = admin_page
    page.goto(f"{live_server.url}/api/v1/docs/")
    page.wait_for_selector("#operations-queues-pauseQueue")
    assert page.locator(".opblock").count() > 30
    page.click("#operations-queues-pauseQueue button.opblock-summary-control")
    page.click("#operations-queues-pauseQueue .try-out__btn")
    page.fill("#operations-queues-pauseQueue input[placeholder='name']", "mail")
    page.fill("#operations-queues-pauseQueue textarea.body-param__text", '{"reason": "tried"}')
    page.click("#operations-queues-pauseQueue .execute")
    page.wait_for_selector("#operations-queues-pauseQueue .live-responses-table")
    row = Queue.objects.get(name="mail")
    assert (row.pause_reason, row.paused_at is not None) == ("tried", True)
