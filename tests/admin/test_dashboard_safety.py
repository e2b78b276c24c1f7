"""The dashboard runs no foreign text, needs no lax policy, and makes few queries."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django.utils.html import escape

from taskqueue import Every, schedules
from taskqueue.models import Queue, Rollup, Task
from taskqueue.models.worker import LONGEST_NAME
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.test_dashboard import URL, make_running, make_worker, read
from tests.sample.tasks import add

MOST_QUERIES = 20
"""Session, user, the user's and the groups' permissions, then the page's own sixteen."""

# Text from elsewhere


@pytest.fixture
def evil_rows(db: None) -> None:
    """A script in every field that the page may show."""
    now = timezone.now()
    worker = make_worker(
        EVIL, host=EVIL, versions={"taskqueue": EVIL}, queues={EVIL: 1}, trouble=EVIL
    )
    make_worker("lost" + EVIL, status="lost")
    make_running(worker, EVIL, progress=5, progress_message=EVIL, wedged_at=now)
    Queue.objects.create(name=EVIL, paused_at=now, paused_by=EVIL, pause_reason=EVIL)
    Queue.objects.create(name="unserved" + EVIL)
    for status, queue in (("ready", EVIL), ("ready", "unserved" + EVIL), ("failed", EVIL)):
        Task.objects.create(
            name=EVIL, queue_name=queue, status=status, attempt=1, error_class=EVIL,
            error_message=EVIL, finished_at=now if status == "failed" else None,
            crash_delay=timedelta(seconds=1),
        )  # fmt: skip
    schedules.create(EVIL.replace("/", "|"), task=add, args=[1], rule=Every(timedelta(hours=1)))
    Rollup.objects.create(queue_name=EVIL, name=EVIL, succeeded=1, starts_at=now)


@pytest.mark.parametrize("headers", [{}, {"X-Requested-With": "taskqueue-refresh"}])
def test_text_from_elsewhere_is_shown_as_text(
    headers: dict[str, str], evil_rows: None, log_in_as: LogIn
) -> None:
    page = log_in_as("superuser").get(URL, {"span": EVIL}, headers=headers).content.decode()
    assert EVIL not in page
    assert EVIL.replace("/", "|") not in page
    assert page.count(escape(EVIL)) > 15


def test_nothing_on_the_page_needs_a_lax_content_security_policy(
    evil_rows: None, log_in_as: LogIn
) -> None:
    page = read(log_in_as("superuser"))
    tags = re.findall(r"<[a-zA-Z][^>]*>", page)
    assert not [tag for tag in tags if re.search(r"\s(style|on[a-z]+)\s*=", tag)]
    assert not [tag for tag in tags if tag.startswith("<script") and "src=" not in tag]
    assert not [tag for tag in tags if tag.startswith("<style")]
    assert "javascript:" not in page


# Cost


def test_the_page_costs_few_queries_however_much_there_is(
    evil_rows: None, log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    worker = make_worker("busy", concurrency=50)
    for number in range(30):
        make_running(worker, f"shop.tasks.task_{number}")
        Queue.objects.create(name=f"queue-{number}")
        make_worker(f"worker-{number}"[:LONGEST_NAME])
    client = log_in_as("viewer")
    for given in ({}, {"span": "day"}, {"span": "week"}):
        with django_assert_max_num_queries(MOST_QUERIES):
            read(client, **given)
