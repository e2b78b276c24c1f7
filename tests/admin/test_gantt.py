"""The page of attempts over workers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue.admin.gantt import drawn
from taskqueue.admin.links import Links
from taskqueue.models import Lease, Task
from taskqueue.monitoring.gantt import gantt
from taskqueue.monitoring.reading import now
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.test_admin import read, url
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
PAGE = url("lease", "gantt")
MINUTE = timedelta(minutes=1)


def ran(minutes_ago: float, minutes: float, **values: object) -> Lease:
    begin = now() - minutes_ago * MINUTE
    return Lease.objects.create(
        **{
            "task": Task.objects.get(id=noop.enqueue().id), "worker_id": "w", "attempt": 1,
            "status": "succeeded", "claimed_at": begin, "started_at": begin,
            "expires_at": begin, "finished_at": begin + minutes * MINUTE,
        } | values
    )  # fmt: skip


def test_each_attempt_is_a_bar_that_leads_to_its_task_and_a_row_of_the_table(
    log_in_as: LogIn,
) -> None:
    good = ran(10, 5)
    bad = ran(4, 1, status="failed", error_class=EVIL, worker_id=EVIL)
    page = read(log_in_as("staff", "view_lease", "view_task"), PAGE)
    for lease, status in ((good, "succeeded"), (bad, "failed")):
        assert page.count(url("task", "change", lease.task_id)) == 2
        assert f'taskqueue-gantt-bar--{status}" width="100%"' in page
    assert EVIL not in page
    assert page.count("<svg x=") == 2
    assert "style=" not in page.partition("taskqueue-gantt-area")[2].partition("</svg>\n<div")[0]


def test_bars_stand_where_they_ran() -> None:
    ran(10, 5)
    ran(60, 1)
    shown = drawn(gantt(20 * MINUTE), Links("admin"))
    (bar,) = shown["bars"]
    assert float(bar["x"]) == pytest.approx(50, abs=1)
    assert float(bar["width"]) == pytest.approx(25, abs=1)
    assert shown["height"] == 42


def test_filters_stay_in_the_form_and_a_wrong_end_is_reported(log_in_as: LogIn) -> None:
    ran(2, 1)
    client = log_in_as("staff", "view_lease", "view_task")
    page = read(client, PAGE + "?span=1h&worker=other")
    assert "Nothing ran in this span." in page
    assert 'value="other"' in page
    assert "is not a time" in read(client, PAGE + "?until=soon")
    assert "<svg x=" in read(client, PAGE + "?until=0s&span=1d")
    assert "Null characters are not allowed" in read(client, PAGE + "?name=a%00b")


def test_it_takes_both_permissions(log_in_as: LogIn) -> None:
    assert log_in_as("staff", "view_lease").get(PAGE).status_code == 403


def test_the_page_says_that_it_is_truncated(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskqueue.monitoring.gantt.MOST_BARS", 1)
    ran(5, 1)
    ran(4, 1)
    page = read(log_in_as("staff", "view_lease", "view_task"), PAGE)
    assert "There may be more attempts in this span" in page
