"""What the doctor finds on any database: settings, queues, workers, duties; and how it says it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from taskqueue import control
from taskqueue.models import Schedule, Task, Worker
from taskqueue.monitoring.doctor import Finding, Severity, examine, worst
from taskqueue.monitoring.doctor.configuration import (
    look_at_clocks,
    look_at_settings,
    of_difference,
)
from taskqueue.monitoring.doctor.work import look_at_work
from tests.management.test_taskqueue import exit_code, refused, run, run_json
from tests.monitoring.rows import HOUR, MINUTE, ago, make_running, make_task, make_worker
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def found(check: str) -> list[tuple[str, str]]:
    """What is not all right with the work: how severe, and what is said."""
    return [
        (str(each.severity), each.seen)
        for each in look_at_work(connection)
        if each.check == check and each.severity is not Severity.OK
    ]


def subjects(**settings: Any) -> dict[str, str]:
    """What is odd about settings."""
    with override_settings(**settings):
        return {each.subject: str(each.severity) for each in look_at_settings(connection)}


def test_all_is_well_where_nothing_waits_and_a_worker_lives() -> None:
    make_worker()
    assert {each.check for each in look_at_work(connection)} == {"queues", "workers", "duties"}
    assert worst(list(look_at_work(connection))) is Severity.OK


def test_unserved_and_paused_queues_are_reported() -> None:
    make_task(queue_name="mail")
    assert found("queues") == [("problem", "No workers are running. Waiting tasks: 1.")]
    make_worker(queues={"default": 1})
    assert found("queues") == [
        ("problem", "No running worker serves the queue mail. Waiting tasks: 1.")
    ]
    make_worker("w2")
    control.pause("mail")
    assert found("queues") == [("warning", "The queue mail is paused. Waiting tasks: 1.")]


def test_failing_lost_and_differently_versioned_workers_are_reported() -> None:
    make_worker("w1", trouble="no module named shop")
    make_worker("w2", status="lost", seen_at=ago(timedelta(minutes=10)))
    make_worker("w3", versions={"taskqueue": "1.3"})
    assert found("workers") == [
        ("problem", "The worker w1 is in trouble: no module named shop"),
        ("warning", "The worker w2 was lost: it sent no heartbeat within its lease."),
        ("info", "Workers of several versions are running: 1.2 (1), 1.3 (1)."),
    ]


def test_tasks_that_only_absent_workers_may_take_are_reported() -> None:
    make_worker()
    pinned = {"route": 1, "pinned_to": "ghost", "worker_names": ["ghost"]}
    task = make_task(run_after=ago(HOUR), **pinned)
    make_task(run_after=ago(MINUTE * 2), **pinned)
    make_task(**pinned)  # It may be restarted just now.
    make_task(route=1, pinned_to="w1", worker_names=["w1"])
    [(severity, seen)] = found("queues")
    assert severity == "problem"
    assert "named workers that are not running or claim nothing: 2." in seen
    assert f"The first is {task.id}, which has waited 60 min for ghost." in seen
    control.pause("default")
    assert [severity for severity, _ in found("queues")] == ["warning"]
    control.resume("default")
    make_worker("ghost")
    assert not any("named workers" in seen for _, seen in found("queues"))


def test_the_doctor_reports_tasks_that_need_more_workers_than_run() -> None:
    make_worker("w1")
    shared = {"route": 1, "run_after": ago(HOUR)}
    task = make_task("running", workers=3, open_slots=2, successes=1, **shared)
    make_running("w1", task=task, status="succeeded", is_shared=True, finished_at=ago(MINUTE))
    make_task("running", workers=2, open_slots=0, successes=1, running_leases=1, **shared)
    make_task("running", workers=2, open_slots=2, broadcast=True, **shared)
    [(severity, seen)] = found("queues")
    assert severity == "problem"
    assert "tasks wait for more workers than are running: 1." in seen
    said = f"The first is {task.id}, which has waited 60 min: of 3 workers it still needs 2"
    assert said in seen
    make_worker("w2")
    assert len(found("queues")) == 1
    make_worker("w3")
    assert found("queues") == []
    # Who ran it is gone: two are left for two.
    Worker.objects.filter(name="w1").update(status="stopped")
    assert found("queues") == []


def test_parked_tasks_are_reported_with_the_remaining_time() -> None:
    make_worker()
    task = make_task("scheduled", parked_at=ago(20 * HOUR), run_after=ago(-MINUTE), name="lost")
    [(severity, seen)] = found("workers")
    assert severity == "problem"
    assert "no worker that claimed them knows lost: 1." in seen
    assert f"The first is {task.id}, parked for 20 h: it fails in 4 h" in seen
    # Tried again, it stands in line, and its last attempt tells of it.
    Task.objects.update(status="ready", parked_at=ago(HOUR))
    assert found("workers") == []
    make_running(task=task, status="returned", error_class="taskqueue.exceptions.UnknownTask",
                 finished_at=ago(MINUTE))  # fmt: skip
    [(severity, seen)] = found("workers")
    assert (severity, "it fails in 23 h" in seen) == ("warning", True)


@pytest.mark.parametrize("has_worker", [True, False])
def test_an_overdue_schedule_is_reported_unless_it_is_paused(has_worker: bool) -> None:
    if has_worker:
        make_worker()
    values = {"task_name": "x", "rule": {}, "request": {}, "served_until": ago(4 * HOUR)}
    Schedule.objects.create(name="nightly", next_at=ago(3 * HOUR), trouble="odd", **values)
    Schedule.objects.create(name="next", next_at=ago(-HOUR), **values)
    Schedule.objects.create(name="rests", next_at=ago(3 * HOUR), paused_at=ago(HOUR), **values)
    [(severity, seen)] = found("duties")
    said = "Schedules are overdue: 1. The first is nightly, for 3 h. odd"
    assert (severity, seen) == ("problem", said)
    Schedule.objects.update(next_at=None)
    make_task("scheduled", run_after=ago(HOUR))
    assert [severity for severity, _ in found("duties")] == ["problem"]


def test_duties_that_nobody_does_are_reported() -> None:
    make_worker()
    make_task("scheduled", run_after=ago(HOUR))
    make_task("succeeded", prune_after=ago(2 * HOUR))
    make_running(expires_at=ago(HOUR))
    assert [severity for severity, _ in found("duties")] == ["problem", "problem", "warning"]
    due, leases, pruning = [seen for _, seen in found("duties")]
    assert due.startswith("A task has been due for 60 min")
    assert leases.startswith("Leases expired, the first 60 min ago")
    assert pruning.startswith("Pruning is 2 h behind")


def test_odd_settings_are_reported() -> None:
    assert "DEBUG" not in subjects()
    assert subjects(DEBUG=True)["DEBUG"] == "warning"
    assert subjects(TASKQUEUE={"LEASE_DURATION": 6, "PING_INTERVAL": 5})["taskqueue.E001"] == (
        "problem"
    )
    assert subjects(TASKQUEUE={"RETENTION": {"failed": None}})["RETENTION"] == "info"


def test_the_doctor_compares_the_clocks() -> None:
    [agreed] = look_at_clocks(connection)
    assert agreed.severity is Severity.OK
    assert "2 s behind the database's" in of_difference(2, is_behind=True).seen
    hour = of_difference(3600, is_behind=False)
    assert (hour.severity, "60 min ahead of" in hour.seen) == (Severity.PROBLEM, True)


def test_the_worst_of_nothing_is_well() -> None:
    assert worst([]) is Severity.OK
    findings = [Finding(check="x", severity=each, seen="") for each in Severity]
    assert worst(findings) is Severity.PROBLEM


# The command


def test_the_doctor_exits_with_1_at_a_problem_alone_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [Finding(check="work", severity=Severity.WARNING, seen="odd", remedy="mend it")]
    monkeypatch.setattr("taskqueue.management.cli.diagnosis.examine", lambda: findings)
    assert run("doctor") == f"warning  work         odd\n{' ' * 22}→ mend it\n"
    assert exit_code(["doctor", "--fail-on", "warning"]) == 1
    findings.append(Finding(check="work", severity=Severity.PROBLEM, seen="ill"))
    assert refused("doctor") == (1, "The doctor found 1 problem and 1 warning.")
    assert exit_code(["doctor", "--fail-on", "never"]) == 0


def test_the_doctor_tells_all_as_json_and_writes_nothing() -> None:
    make_worker()
    noop.enqueue()
    told = run_json("doctor", "--fail-on", "never")
    assert told["worst"] in set(Severity)
    assert {each["check"] for each in told["findings"]} >= {"settings", "migrations", "queues"}
    assert all(each.seen for each in examine())


def test_text_from_users_does_not_steer_the_terminal() -> None:
    make_worker("w\x1b[2J", trouble="\x1b[31mred")
    assert "\x1b" not in run("doctor", "--fail-on", "never")
