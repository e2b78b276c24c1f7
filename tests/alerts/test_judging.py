"""Each kind of rule is judged by the dashboard's figures, with its own numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import control
from taskqueue.core.alerts import KINDS, AlertKind, Judged
from taskqueue.models import Limit, Limiter, Queue, Task, Workflow
from taskqueue.monitoring.alerts.judging import JUDGES, judge
from taskqueue.monitoring.alerts.situation import AlertSituation
from taskqueue.monitoring.notices.judging import notices
from tests.alerts.steps import look_now, mails, make_rule
from tests.monitoring.rows import (
    HOUR,
    MINUTE,
    ago,
    make_rollup,
    make_running,
    make_schedule,
    make_task,
    make_worker,
)

pytestmark = pytest.mark.django_db


def judged(kind: str, **fields: Any) -> list[Judged]:
    """What a rule of that kind finds now."""
    rule = make_rule(f"{kind} {timezone.now().isoformat()}", kind, **fields)
    return judge(rule, AlertSituation())


def subjects(kind: str, **fields: Any) -> list[str]:
    """For whom its condition holds."""
    return [each.subject for each in judged(kind, **fields)]


def test_every_kind_has_a_judge() -> None:
    assert set(JUDGES) == set(KINDS) == set(AlertKind)


@pytest.mark.parametrize("kind", sorted(set(AlertKind) - {"heartbeat"}))
def test_nothing_holds_where_a_worker_idles(kind: str) -> None:
    Queue.objects.create(name="default")
    make_worker()
    assert subjects(kind) == []


def test_tasks_that_failed_are_counted_by_name() -> None:
    for name in ("shop.send", "shop.send", "shop.bill", "site.ping"):
        make_task("failed", name=name)
    make_task("failed", name="shop.old", finished_at=ago(HOUR))
    make_task("succeeded", name="shop.fine")
    found = {each.subject: each.count for each in judged("failure")}
    assert found == {"shop.send": 2, "shop.bill": 1, "site.ping": 1}
    assert subjects("failure", threshold=2) == ["shop.send"]
    assert subjects("failure", scope="name", pattern="shop.*") == ["shop.bill", "shop.send"]
    assert subjects("failure", scope="queue", pattern="def*") == ["default"]
    assert subjects("failure", scope="queue", pattern="web") == []
    assert "shop.old" in subjects("failure", window=7200)


def test_failed_deliveries_of_alerts_and_webhooks_raise_no_alert_but_one_that_names_them() -> None:
    deliveries = ["taskqueue.alerts.mail", "taskqueue.webhooks.deliver"]
    for name in [*deliveries, "taskqueue.command"]:
        make_task("failed", name=name)
    assert subjects("failure") == ["taskqueue.command"]
    assert subjects("failure", scope="name", pattern="*") == ["taskqueue.command"]
    (by_queue,) = judged("failure", scope="queue", pattern="*")
    assert by_queue.count == 1
    assert subjects("failure", scope="name", pattern=deliveries[1]) == deliveries[1:]


def test_a_name_is_compared_as_it_is_before_it_is_taken_for_a_pattern() -> None:
    make_task("failed", name="shop.test[1]")
    assert subjects("failure", scope="name", pattern="shop.test[1]") == ["shop.test[1]"]


def test_each_further_failure_is_news_after_five_minutes() -> None:
    from tests.alerts.steps import pass_time

    make_worker()
    make_rule(kind="failure")
    make_task("failed")
    look_now()
    look_now()
    assert mails() == [["raised"]]
    make_task("failed")
    make_task("failed")
    look_now()
    pass_time(300)
    look_now()
    pass_time(300)
    look_now()
    assert mails() == [["raised"], ["more"]]


def test_a_rule_with_a_threshold_reports_several_failures_once() -> None:
    from tests.alerts.steps import pass_time

    make_worker()
    make_rule(kind="failure", threshold=2)
    make_task("failed")
    look_now()
    assert mails() == []
    for _ in range(3):
        make_task("failed")
    look_now()
    pass_time(300)
    make_task("failed")
    look_now()
    assert mails() == [["raised"]]


def test_a_failure_rate_needs_twenty_attempts() -> None:
    make_rollup(ago(2 * MINUTE), queue_name="few", failed=9, succeeded=10)
    make_rollup(ago(2 * MINUTE), queue_name="bad", name="shop.bill", failed=2, lost=1, succeeded=17)
    make_rollup(ago(2 * MINUTE), queue_name="good", failed=2, succeeded=18)
    make_rollup(ago(HOUR), queue_name="past", failed=20)
    (found,) = judged("failure_rate")
    assert (found.subject, found.value) == ("bad", 0.15)
    assert found.summary == (
        "In the queue bad, 3 of 20 attempts failed within the last 15 minutes."
    )
    assert subjects("failure_rate", threshold=0.05) == ["bad", "good"]
    assert subjects("failure_rate", scope="name", pattern="shop.b*") == ["shop.bill"]
    assert "past" in subjects("failure_rate", window=7200)


def test_the_wait_of_the_oldest_task_is_compared_but_not_that_of_a_paused_queue() -> None:
    make_worker()
    make_task(run_after=ago(6 * MINUTE))
    make_task(run_after=ago(6 * MINUTE), queue_name="paused")
    make_task(run_after=ago(4 * MINUTE), queue_name="web")
    Queue.objects.create(name="paused", paused_at=timezone.now())
    assert subjects("queue_latency") == ["default"]
    assert subjects("queue_latency", threshold=200) == ["default", "web"]
    assert subjects("queue_latency", threshold=200, scope="queue", pattern="w*") == ["web"]


def test_a_late_queue_is_reported_by_whether_its_workers_are_busy() -> None:
    make_worker(concurrency=1)
    make_task(run_after=ago(6 * MINUTE))
    (found,) = judged("queue_latency")
    assert found.summary.startswith("The oldest task of the queue default has waited 6 min")
    assert "though a worker has free slots. Waiting tasks: 1." in found.summary
    assert "taskqueue why ID" in found.remedy
    assert found.words
    make_running(task=make_task("running", queue_name="web"))
    (found,) = judged("queue_latency")
    assert ", and its workers are busy. Waiting tasks: 1." in found.summary
    assert "Start more workers" in found.remedy


def test_new_errors_of_taskqueues_own_tasks_are_reported_if_a_rule_names_them() -> None:
    make_worker()
    make_task("failed", name="shop.send", error_class="shop.New")
    make_task("failed", name="taskqueue.webhooks.deliver", error_class="x.Down")
    assert subjects("new_error") == ["shop.send: shop.New"]
    assert subjects("new_error", scope="name", pattern="*") == ["shop.send: shop.New"]
    own = subjects("new_error", scope="name", pattern="taskqueue.*")
    assert own == ["taskqueue.webhooks.deliver: x.Down"]
    assert [each.subject for each in notices() if each.code == "new_error"] == ["shop.send"]


def test_queues_that_nobody_serves_are_not_late_nor_is_one_while_everything_is_paused() -> None:
    make_worker(queues={"web": 1})
    make_task(run_after=ago(6 * MINUTE))
    make_task(run_after=ago(6 * MINUTE), queue_name="web")
    assert subjects("queue_latency") == ["web"]
    control.pause_all(reason="deploy")
    assert subjects("queue_latency") == []


def test_retries_of_deliveries_make_no_failure_rate_of_the_queue_they_run_in() -> None:
    make_worker()
    tried = {"name": "taskqueue.webhooks.deliver", "failed": 20, "succeeded": 5}
    make_rollup(ago(2 * MINUTE), queue_name="default", **tried)
    make_rollup(ago(2 * MINUTE), queue_name="default", name="shop.bill", failed=1, succeeded=24)
    assert subjects("failure_rate") == []
    assert subjects("failure_rate", scope="name", pattern="*") == []
    assert subjects("failure_rate", threshold=0.03) == ["default"]
    codes = {notice.code for notice in notices(AlertSituation())}
    assert not codes & {"failing", "failure_jump"}


def test_tasks_that_wait_are_counted_as_far_as_the_threshold() -> None:
    make_worker()
    for _ in range(3):
        make_task()
    assert subjects("queue_depth", threshold=3) == ["default"]
    assert subjects("queue_depth", threshold=4) == []
    assert subjects("queue_depth") == []


def test_queues_that_nobody_serves_and_those_that_stall() -> None:
    make_worker(queues={"web": 1})
    make_task(run_after=ago(2 * MINUTE))
    make_task(run_after=ago(2 * MINUTE), queue_name="web")
    assert subjects("queue_unserved") == ["default"]
    assert subjects("queue_stalled") == ["web"]


def test_that_no_worker_takes_tasks_although_one_lives() -> None:
    make_worker(status="quiet")
    assert subjects("no_worker") == [""]
    make_worker("w2")
    assert subjects("no_worker") == []


def test_workers_that_are_lost_and_in_trouble() -> None:
    make_worker("w1", trouble="no disk")
    make_worker("w2", seen_at=ago(5 * MINUTE))
    assert subjects("worker_trouble") == ["w1"]
    assert subjects("worker_lost") == ["w2"]
    assert subjects("worker_lost", scope="worker", pattern="w1") == []


def test_attempts_that_are_wedged() -> None:
    make_worker()
    lease = make_running(wedged_at=timezone.now())
    (found,) = judged("wedged")
    assert (found.subject, found.example) == (str(lease.task_id), str(lease.task_id))
    assert subjects("wedged", scope="name", pattern="site.*") == []


def test_schedules_that_are_overdue_paused_by_failures_and_in_trouble() -> None:
    make_worker()
    make_schedule("late", next_at=ago(2 * MINUTE))
    make_schedule("ill", trouble="no such task")
    make_schedule("tired", paused_at=timezone.now(), failures_in_row=3, pause_after_failures=3)
    make_schedule("by hand", paused_at=timezone.now(), paused_by="ann", next_at=ago(HOUR))
    assert subjects("schedule_missed") == ["late"]
    assert subjects("schedule_trouble") == ["ill"]
    assert subjects("schedule_paused") == ["tired"]
    assert subjects("schedule_paused", scope="schedule", pattern="x*") == []


def make_workflow(name: str, status: str, seconds: float, **fields: Any) -> Workflow:
    now = timezone.now()
    values = {
        "format": 1, "created_at": now - timedelta(seconds=seconds),
        "finished_at": None if status == "running" else now, **fields,
    }  # fmt: skip
    return Workflow.objects.create(name=name, status=status, **values)


def test_workflows_that_failed_without_their_children() -> None:
    failed = make_workflow("etl", "failed", 60)
    make_workflow("child", "failed", 60, parent_step_id=7)
    make_workflow("old", "failed", 60, finished_at=ago(HOUR))
    (found,) = judged("workflow_failed")
    assert (found.subject, found.count, found.example) == ("etl", 1, str(failed.pk))
    assert subjects("workflow_failed", threshold=2) == []


def test_workflows_over_three_times_their_usual_time() -> None:
    for _ in range(20):
        make_workflow("etl", "succeeded", 60)
    make_workflow("etl", "running", 150)
    make_workflow("new", "running", 9000)
    assert subjects("workflow_slow") == []
    slow = make_workflow("etl", "running", 240)
    (found,) = judged("workflow_slow")
    assert (found.subject, found.example) == ("etl", str(slow.pk))
    assert found.value == pytest.approx(4, rel=0.2)
    assert subjects("workflow_slow", threshold=10) == []


def test_limits_that_are_used_up_while_tasks_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    from uuid import uuid4

    from taskqueue.models import Partition, Slot

    make_worker()
    limit = Limit.objects.create(name="stripe", concurrency=1)
    limiter = Limiter.objects.create(id=uuid4(), limit=limit)
    lease = make_running()
    assert subjects("limit_saturated") == []
    Slot.objects.create(limiter=limiter, lease=lease)
    type(lease).objects.filter(pk=lease.pk).update(is_limited=True)
    partition = Partition.objects.create(
        id=uuid4(), queue_name="default", limiters=[str(limiter.id)], state="waiting",
        waits_for=limiter.id,
    )  # fmt: skip
    assert subjects("limit_saturated") == []
    make_task(route=2, partition=partition.id)
    assert subjects("limit_saturated") == ["stripe"]


def test_one_look_reads_each_part_once_however_many_rules_there_are() -> None:
    make_worker()
    for number in range(3):
        make_rule(f"latency {number}", "queue_latency", threshold=number + 1)
        make_rule(f"failure {number}", "failure", scope="name", pattern=f"shop.{number}")
    look_now()
    with CaptureQueriesContext(
        connection,
    ) as few:
        look_now()
    for number in range(3, 30):
        make_rule(f"latency {number}", "queue_latency", threshold=number + 1)
        make_rule(f"failure {number}", "failure", scope="name", pattern=f"shop.{number}")
    with CaptureQueriesContext(connection) as many:
        look_now()
    assert len(many) == len(few)
    assert not Task.objects.exists()
