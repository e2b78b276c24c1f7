"""A row of each kind and state, with one text in every field that takes text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from django.utils import timezone

from taskqueue import Every, schedules
from taskqueue.control import TaskFilter
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.making_specs import spec_of
from taskqueue.models import (
    AlertRule,
    Audit,
    Collected,
    Delivery,
    Dependency,
    Endpoint,
    Incident,
    Lease,
    Limit,
    Limiter,
    Occurrence,
    Operation,
    Partition,
    Pause,
    Queue,
    Rollup,
    SavedSearch,
    Schedule,
    Step,
    Task,
    TaskLog,
    Worker,
    Workflow,
)
from tests.sample.tasks import echo

MINUTE = timedelta(minutes=1)


@dataclass
class Everything:
    """What was made, by what it is."""

    text: str
    tasks: dict[str, Task] = field(default_factory=dict)
    """By status."""
    rows: dict[str, Any] = field(default_factory=dict)
    """By what they are: a model's name, and words for special ones."""

    def row(self, what: str) -> Any:
        """A row by what it is; `task` stands for one that failed."""
        return self.tasks.get("failed" if what == "task" else what) or self.rows[what]


def everything(text: str, *, name: str = echo.name, **arguments: Any) -> Everything:
    """The rows; tasks of that name with these `args` and `kwargs`, else with the text."""
    made = Everything(text)
    call = {"args": [text, {text: text}], "kwargs": {text: [text]}} | arguments
    _make_lanes(made)
    for status in TaskStatus:
        made.tasks[status.value] = _task(made, status, name=name, **call)
    made.rows["stranger"] = _task(made, TaskStatus.CANCELLED, name=text, **call)
    _make_attempts(made)
    _make_schedule(made)
    _make_records(made, name)
    _make_workflows(made)
    _make_groups(made)
    _make_limits(made)
    _make_alerts(made)
    _make_webhooks(made)
    return made


def _task(made: Everything, status: TaskStatus, **values: Any) -> Task:
    text, now = made.text, timezone.now()
    is_running = status == TaskStatus.RUNNING
    return Task.objects.create(
        status=status.value, queue_name=text, crash_delay=MINUTE, metadata={text: text},
        options={"note": text}, unique_key=f"{text} {status}", unique_for="finished",
        attempt=1, max_attempts=3, started_at=now, ready_at=now, run_after=now - MINUTE,
        finished_at=now if status in FINISHED else None,
        return_value={text: [text]} if status == TaskStatus.SUCCEEDED else None,
        error_class=text if status != TaskStatus.SUCCEEDED else "",
        error_message=text if status != TaskStatus.SUCCEEDED else "",
        running_leases=1 if is_running else 0, open_slots=0 if is_running else 1,
        worker_names=[text] if status == TaskStatus.BLOCKED else None,
        **values,
    )  # fmt: skip


def _make_lanes(made: Everything) -> None:
    text, now = made.text, timezone.now()
    paused = {"paused_at": now, "paused_by": text, "pause_reason": text}
    made.rows["queue"] = Queue.objects.create(name=text)
    made.rows["paused queue"] = Queue.objects.create(name=f"{text} paused", **paused)
    made.rows["empty queue"] = Queue.objects.create(name=f"{text} empty")
    made.rows["paused definition"] = Pause.objects.create(name=text, **paused)
    made.rows["pause of everything"] = Pause.objects.create(name="", **paused)
    made.rows["worker"] = Worker.objects.create(
        name=text, host=text, pid=1, started_at=now - 2 * MINUTE, seen_at=now + 10 * MINUTE,
        trouble=text,
        queues={text: 1}, versions={"python": text, "taskqueue": text, text: text},
        schedules=[text], concurrency=4, running_leases=1, memory_bytes=1_000_000,
        queue_slots={text: 1}, definition_slots={text: 1}, wanted={"queues": text},
        wanted_at=now, wanted_by=text, wanted_reason=text,
    )  # fmt: skip
    made.rows["asked worker"] = Worker.objects.create(
        name=f"{text} asked", host=text, pid=2, started_at=now, seen_at=now + 10 * MINUTE,
        request="quiet", requested_at=now, requested_by=text, request_reason=text,
    )  # fmt: skip


def _make_alerts(made: Everything) -> None:
    """Rules, of which one has an alert that is firing and one that is over."""
    text, now = made.text, timezone.now()
    values = {
        "kind": "failure", "scope": "name", "pattern": text, "trouble": text, "created_by": text,
        "channels": {"mail": ["ops@example.org"]}, "next_at": now + 60 * MINUTE,
    }  # fmt: skip
    rule = made.rows["alertrule"] = AlertRule.objects.create(name=text, **values)
    made.rows["silenced rule"] = AlertRule.objects.create(
        name=f"{text} silenced", silenced_until=now + 60 * MINUTE, silenced_by=text,
        silence_reason=text, **values,
    )  # fmt: skip
    told = {
        "rule": rule, "subject": text, "summary": text, "remedy": text, "example": text[:36],
        "began_at": now - MINUTE, "raised_at": now - MINUTE, "notified_at": now - MINUTE,
    }  # fmt: skip
    made.rows["ended incident"] = Incident.objects.create(
        status="ended", ended_at=now, is_settled=True, acknowledged_at=now, acknowledged_by=text,
        acknowledge_reason=text, **told,
    )  # fmt: skip
    made.rows["incident"] = Incident.objects.create(status="firing", **told)


def _make_webhooks(made: Everything) -> None:
    """An endpoint with a delivery that was answered, and one that is disabled."""
    text = made.text
    values = {
        "url": f"https://example.com/{quote(text)}", "description": text, "created_by": text,
        "secret": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "names": [text], "queues": [text],
        "changed_at": datetime(2026, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    made.rows["endpoint"] = Endpoint.objects.create(**values)
    made.rows["disabled endpoint"] = Endpoint.objects.create(
        **values, is_enabled=False, disabled_for="failing", failing_since=timezone.now()
    )
    made.rows["delivery"] = Delivery.objects.create(
        endpoint=made.rows["endpoint"], seq=1, kind="task.failed", status="failed", answer=text,
        error=text, task_id=made.tasks["failed"].id, payload={"data": {"name": text}},
        attempted_at=timezone.now(), milliseconds=5, attempts=1,
    )  # fmt: skip


def _make_limits(made: Everything) -> None:
    """Limits, one of them with other numbers; the task that failed halts a sequence."""
    text, failed = made.text, made.tasks["failed"]
    made.rows["limit"] = Limit.objects.create(name=text, concurrency=2)
    Limiter.objects.create(id=uuid4(), limit=made.rows["limit"], key=text)
    made.rows["changed limit"] = Limit.objects.create(
        name=f"{text} changed", concurrency=2, concurrency_override=1
    )
    failed.limits = {
        "limits": [{"name": text, "key": text, "per": "key", "concurrency": 2}],
        "tenant": {"key": text, "weight": 1.0},
        "sequence": {"name": text, "key": text, "halts": True},
        "tags": [text],
    }
    failed.partition = uuid4()
    failed.save()
    Partition.objects.create(
        id=failed.partition, queue_name=text, limits=failed.limits, state="halted",
        holder=failed.id,
    )  # fmt: skip


def _make_attempts(made: Everything) -> None:
    text, now = made.text, timezone.now()
    common = {
        "worker_id": text, "claimed_at": now - MINUTE, "started_at": now - MINUTE,
        "expires_at": now + 10 * MINUTE,
    }  # fmt: skip
    asked = {"stop_requested_at": now, "stop_requested_by": text, "stop_reason": text}
    said = {"progress": 25, "progress_message": text, "progressed_at": now}
    wrong = {"error_class": text, "error_message": text, "traceback": f"Traceback\n  {text}"}
    made.rows["running lease"] = Lease.objects.create(
        task=made.tasks["running"], attempt=1, wedged_at=now, **common, **said, **asked
    )
    for attempt, status in enumerate(("returned", "lost", "stopped", "failed"), start=1):
        made.rows["lease"] = Lease.objects.create(
            task=made.tasks["failed"], attempt=attempt, status=status, finished_at=now,
            return_value=text, **common, **said, **asked, **wrong,
        )  # fmt: skip
    for status in ("failed", "running", "succeeded"):
        made.rows["tasklog"] = TaskLog.objects.create(
            task=made.tasks[status], attempt=1, logged_at=now, level=30, logger=text, message=text
        )


def _make_schedule(made: Everything) -> None:
    text, now = made.text, timezone.now()
    schedule = schedules.create(
        "plain", echo, Every(hours=1), args=[text], kwargs={"note": text},
        options={"metadata": {text: text}}, by=text, reason=text,
    )  # fmt: skip
    other = schedules.create("plain too", echo, Every(hours=1), by=text)
    # The options of the first are broken below, and the other runs what nobody knows.
    sound = schedules.create("plain sound", echo, Every(hours=1), by=text)
    rows = Schedule.objects.filter(pk__in=[schedule.pk, other.pk])
    rows.update(
        trouble=text, last_status="failed", last_error=text, last_finished_at=now,
        last_return_value=text, last_task_id=made.tasks["failed"].pk, last_nominal_at=now,
    )  # fmt: skip
    # Not due in a test that crosses a full hour: a run by hand would be skipped for that one.
    rows.filter(pk=schedule.pk).update(
        name=text, options={"queue_name": text, text: text},
        served_until=now + timedelta(hours=1), next_at=now + timedelta(hours=2),
    )  # fmt: skip
    rows.filter(pk=other.pk).update(
        name=f"{text} paused", task_name=text, paused_at=now, paused_by=text, pause_reason=text
    )
    made.rows["schedule"] = rows.get(pk=schedule.pk)
    made.rows["paused schedule"] = rows.get(pk=other.pk)
    sound.name = f"{text} sound"
    sound.save()
    made.rows["sound schedule"] = sound
    made.rows["occurrence"] = Occurrence.objects.create(
        schedule=schedule, nominal_at=now, status="skipped", reason=text, requested_by=text
    )
    Occurrence.objects.create(
        schedule=schedule, nominal_at=now - MINUTE, status="ended", reason=text,
        requested_by=text, task_id=made.tasks["failed"].pk, task_status="failed",
    )  # fmt: skip


def _make_workflows(made: Everything) -> None:
    """Make workflows without tasks: those would stand in lists of tasks too."""
    text, now = made.text, timezone.now()
    said = {
        "name": text, "version": text, "args": [text], "kwargs": {text: text},
        "context": {text: text}, "stop_requested_by": text, "stop_reason": text, "trouble": text,
        "failed_step": text, "error": {"error_class": text, "message": text, "task_id": None},
    }  # fmt: skip
    ended = {"status": "failed", "finished_at": now, "open_steps": 0}
    for kind, more in {
        "workflow": {}, "paused workflow": {"paused_at": now}, "finished workflow": ended,
    }.items():  # fmt: skip
        row = Workflow(
            format=1, open_steps=2, total_steps=2, unique_key=f"{text} {kind.split()[0]}", **said
        )
        for name, value in more.items():
            setattr(row, name, value)
        row.save()
        made.rows[kind] = row
        steps = [
            Step(workflow=row, name=name, kind="task", members=1, reason=text,
                 request={"name": text}, taken=1, waits=waits)
            for waits, name in enumerate(("echo", text))
        ]  # fmt: skip
        first, second = Step.objects.bulk_create(steps)
        Dependency.objects.create(upstream=first, downstream=second)
        if row.finished_at is not None:
            Step.objects.filter(id=first.id).update(status="failed", finished_at=now)


def _make_groups(made: Everything) -> None:
    text = made.text
    spec = spec_of(echo).as_json()
    for name, group in ((text, text), ("plain", "42")):
        Collected.objects.create(
            name=name, group=group, event='"secret"', size=8, collected_at=timezone.now(),
            max_size=100, max_bytes=1000, grace=3600, max_delay=3600, spec=spec,
        )  # fmt: skip


def _make_records(made: Everything, name: str) -> None:
    text, now = made.text, timezone.now()
    who = {"requested_by": text, "reason": text, "query": text}
    made.rows["operation"] = Operation.objects.create(verb="retry", **who)
    made.rows["failed operation"] = Operation.objects.create(
        verb="update", status="failed", error=text, finished_at=now, started_at=now, **who,
        chosen={"which": TaskFilter(queue_name=text).to_json()},
        arguments={"changes": {"queue_name": text}},
    )  # fmt: skip
    made.rows["search"] = SavedSearch.objects.create(
        name=text, query=f'queue:"{text}"', owner=text, owner_name=text, is_shared=True
    )
    subjects = [str(made.tasks["failed"].pk), text, made.rows["schedule"].name]
    for subject in subjects:
        made.rows["audit"] = Audit.objects.create(
            actor=text, noun="task", verb="retry", subject=subject, reason=text, before="failed",
            detail=text,
        )  # fmt: skip
    for named in (name, text):
        made.rows["rollup"] = Rollup.objects.create(
            resolution=60, starts_at=now.replace(second=0, microsecond=0), queue_name=text,
            name=named, succeeded=2, failed=1, run_seconds=3, wait_seconds=1,
            run_times={"1": 3}, wait_times={"1": 3}, slowest_seconds=2,
            slowest_task_id=made.tasks["failed"].pk,
        )  # fmt: skip
