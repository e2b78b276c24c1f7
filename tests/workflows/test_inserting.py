"""Members of maps are inserted alike, by whichever statement."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from taskqueue import group, workflow
from taskqueue.engine.postgresql import workflows as statements
from taskqueue.models import Member, Task
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)
ODD = ['ü "quoted" \\ \t\u2028', {"key": [None, 1.5, True]}, "", "$$step"]


@workflow(name="tests.optioned", deadline=timedelta(hours=1))
def optioned(wf: Builder, value: Any) -> None:
    call = echo.using(
        queue_name="mail", priority=7, timeout=5, retention=timedelta(days=2),
        expires_after=timedelta(minutes=30), metadata={"ö": 1}, ping_interval=9, max_attempts=4,
    )  # fmt: skip
    wf.step(call.starmap([(place, value) for place in range(3)]))


OWN = ("id", "step", "enqueued_at", "ready_at", "run_after", "deadline_at", "expires_at")


def rows(value: Any) -> list[dict[str, Any]]:
    """The tasks of a workflow, without what differs from one to the next."""
    run = optioned.enqueue(value)
    tasks = list(Task.objects.filter(step__workflow=run.id).order_by("place"))
    assert Member.objects.filter(task__in=tasks).count() == len(tasks) == 3
    for task in tasks:
        assert task.ready_at == task.enqueued_at == task.run_after
        assert task.expires_at == task.enqueued_at + timedelta(minutes=30)
        assert task.deadline_at == task.enqueued_at + timedelta(hours=1)
    names = [field.name for field in Task._meta.concrete_fields if field.name not in OWN]
    return [{name: getattr(task, name) for name in names} for task in tasks]


@pytest.mark.postgresql_only
@pytest.mark.parametrize("value", ODD)
def test_copied_rows_are_like_inserted_ones(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "FEWEST_COPIED", 1)
    copied = rows(value)
    monkeypatch.setattr(statements, "FEWEST_COPIED", 1000)
    assert copied == rows(value)
    assert [each["args"] for each in copied] == [[0, value], [1, value], [2, value]]


def test_a_group_of_many_runs_as_a_small_one_does() -> None:
    run = finish(group(add.s(number, 1) for number in range(120)).enqueue())
    assert run.return_value == list(range(1, 121))
    assert_settled(run)


def test_members_for_certain_workers_are_many_too() -> None:
    call = add.using(worker_names=["testing"])
    run = finish(group(call.s(number, 1) for number in range(60)).enqueue())
    assert run.status == "succeeded"
    assert_settled(run)
