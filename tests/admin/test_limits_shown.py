"""The page of limits: gauges, keys, and forms that refuse what others have changed meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Fair, Sequence
from taskqueue.models import Audit, Limit, Queue, Task, Worker
from tests.admin.conftest import LogIn
from tests.engine.steps import end
from tests.engine.test_limits import take, two_a_key
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db
NAME = "tests.sample.tasks.add:a"


@pytest.fixture
def limit() -> Limit:
    """A limit under which three run and two wait."""
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 1, 2)])
    take()
    take()
    return Limit.objects.get()


def page(name: str, *args: object) -> str:
    return reverse(f"admin:taskqueue_{name}", args=args)


def test_limits_are_listed_with_gauges_and_shown_with_their_keys(
    limit: Limit, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", "view_limit")
    listed = client.get(page("limit_changelist")).content.decode()
    assert NAME in listed
    assert 'max="2" value="2"' in listed
    shown = client.get(page("limit_change", limit.pk)).content.decode()
    assert "Keys with the most waiting tasks" in shown
    assert page("limit_act", limit.pk) not in shown, "only for those who may"


def test_other_numbers_are_set_and_reset_as_they_were_seen(limit: Limit, log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_limit", "control_queues")
    context: Any = client.get(page("limit_change", limit.pk)).context
    body = {"verb": "set", "concurrency": "5", "seen": context["seen"], "reason": "a fire"}
    client.post(page("limit_act", limit.pk), body)
    limit.refresh_from_db()
    assert limit.concurrency_override == 5
    stale = client.post(page("limit_act", limit.pk), {**body, "concurrency": "6"}, follow=True)
    assert "changed" in stale.content.decode()
    limit.refresh_from_db()
    assert limit.concurrency_override == 5
    seen = stale.context["seen"]
    client.post(page("limit_act", limit.pk), {"verb": "reset", "seen": seen})
    limit.refresh_from_db()
    assert limit.concurrency_override is None
    assert list(Audit.objects.order_by("id").values_list("verb", "reason")) == [
        ("set", "a fire"), ("reset", ""),
    ]  # fmt: skip


def test_a_queue_is_limited_and_its_limit_lifted(log_in_as: LogIn) -> None:
    Queue.objects.create(name="mail")
    client = log_in_as("staff", "view_queue", "control_queues")
    act = page("queue_act", "mail")
    client.post(act, {"verb": "limit", "concurrency": "20", "rate": "100/m"})
    queue = Queue.objects.get()
    assert queue.limiter_id is not None
    shown = client.get(page("queue_change", queue.pk)).content.decode()
    assert "20 at once, 100/m" in " ".join(shown.split())
    refused = client.post(act, {"verb": "limit"}, follow=True).content.decode()
    assert "Enter how many tasks" in refused
    client.post(act, {"verb": "limit", "lift": "1"})
    queue.refresh_from_db()
    assert queue.limiter_id is None


def test_the_page_of_a_task_tells_what_limits_it(limit: Limit, log_in_as: LogIn) -> None:
    task = add.using(requires={"gpu"}, rate=limit_rate()).enqueue(1)
    client = log_in_as("staff", "view_task")
    shown = client.get(page("task_change", task.id)).content.decode()
    assert "Required tags" in shown
    assert "api.rate (1)" in shown
    now = timezone.now()
    Worker.objects.create(
        name="w1", host="h1", pid=1, lease_seconds=600, started_at=now, seen_at=now, concurrency=9
    )
    waiting = Task.objects.filter(status="ready", args=[1]).exclude(id=task.id).first()
    assert waiting is not None
    shown = client.get(page("task_change", waiting.id)).content.decode()
    assert "is full for 1. Tasks that hold it: 2;" in " ".join(shown.split())


def limit_rate() -> Any:
    from taskqueue import Rate

    return Rate("5/m", key="a", name="api.rate")


def test_a_halted_sequence_is_released_on_the_page_of_its_tasks(log_in_as: LogIn) -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed, behind = ordered.enqueue(1), ordered.enqueue(1, 2)
    client = log_in_as("staff", "view_task", "operate")
    button = 'name="verb" value="release"'
    assert button not in client.get(page("task_change", behind.id)).content.decode()
    [taken] = take()
    end(taken, OutcomeKind.FAILED)
    take()
    assert button in client.get(page("task_change", failed.id)).content.decode()
    assert button in client.get(page("task_change", behind.id)).content.decode()
    act = page("task_act", behind.id)
    told = client.post(act, {"verb": "release", "reason": "was sent by hand"}, follow=True)
    assert f"The sequence of task {behind.id} goes on." in told.content.decode()
    assert button not in told.content.decode()
    assert [row.task_id for row in take()] == [str(behind.id)]
    refused = client.post(act, {"verb": "release"}, follow=True).content.decode()
    assert "no sequence that is halted" in refused


def test_the_page_of_a_queue_shows_how_its_tenants_share_it(log_in_as: LogIn) -> None:
    queue = Queue.objects.create(name="default")
    client = log_in_as("staff", "view_queue")
    assert "Tenants" not in client.get(page("queue_change", queue.pk)).content.decode()
    add.using(fair=Fair("a")).enqueue_many([((key,), {}) for key in (4711, 4711, 4712)])
    take(1)
    shown = " ".join(client.get(page("queue_change", queue.pk)).content.decode().split())
    assert "4711" in shown
    assert "4712" in shown
    assert "Jain" in shown
