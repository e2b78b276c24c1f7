"""Actions and pending requests of people can be read in the admin."""

from __future__ import annotations

import pytest

from taskqueue import control
from taskqueue.models import Audit, Queue, Task, Worker
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, Rows
from tests.admin.test_admin import read, url
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def test_a_paused_queue_shows_who_paused_it_why_and_until_when(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("viewer")
    control.pause("default", until=3600, by="anna", reason=EVIL)
    page = read(client, url("queue", "change", rows.queue.pk))
    assert "anna" in page
    assert "gotcha" in page
    assert EVIL not in page
    assert "taskqueue-badge--paused" in read(client, url("queue", "changelist"))
    Queue.objects.update(paused_until=rows.task.enqueued_at)
    assert "taskqueue-badge--paused" not in read(client, url("queue", "changelist"))


def test_a_worker_shows_its_requests(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    control.quiet_worker("worker-1", by="anna", reason="a new release")
    Worker.objects.update(status="quiet")
    page = read(client, url("worker", "change", rows.worker.pk))
    assert "a new release" in page
    assert "anna" in page
    assert "taskqueue-badge--quiet" in page
    assert "taskqueue-badge--quiet" in read(client, url("worker", "changelist"))


def test_a_task_shows_which_one_it_was_made_from_and_who_may_run_it(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("viewer")
    old = noop.using(worker_names=["worker-1", "worker-2"]).enqueue()
    old.cancel()
    new = old.retry(args=[])
    page = read(client, url("task", "change", new.id))
    assert str(old.id) in page
    assert "worker-2" in page
    line = Audit.objects.get(verb="retry")
    assert str(new.id) in read(client, url("audit", "change", line.pk))
    assert Task.objects.get(id=new.id).retry_of_id == old.id
