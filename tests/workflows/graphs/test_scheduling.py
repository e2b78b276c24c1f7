"""The schedules that workflows declare."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import Cron, Every, InvalidSchedule, Scheduled, workflow
from taskqueue.declarations.declared_schedules import named
from taskqueue.declarations.definition_checks import check_schedules
from taskqueue.declarations.workflows.scheduling import call_of, check_scheduled_workflow
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.workflows import Builder, Workflow
from tests.workflows import shop
from tests.workflows.graph_text import steps


@pytest.fixture(autouse=True)
def _own_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workflows that a test declares."""
    monkeypatch.setattr(workflows, "_definitions", dict(workflows._definitions))


def declared(**options: Any) -> Workflow:
    """Declare a workflow with a schedule."""

    def body(wf: Builder, day: str = "monday") -> None:
        wf.step(shop.load.s(day))

    return workflow(name="scheduling.made", **options)(body)


def test_a_workflow_declares_schedules_by_name() -> None:
    made = declared(schedule=[Cron("0 6 * * *"), Scheduled(Every(hours=1), args=["sunday"])])
    assert [name for name, _ in named(made)] == ["scheduling.made", "scheduling.made:2"]
    for _, scheduled in named(made):
        check_scheduled_workflow(scheduled, made)


def test_each_run_makes_the_call_that_the_schedule_says() -> None:
    made = declared()
    scheduled = Scheduled(
        Every(hours=1), args=["sunday"], options={"unique_key": ["day"], "deadline": "2h"}
    )
    graph = call_of(scheduled, made).build()
    assert steps(graph) == {"load": 'load["sunday"]'}
    assert graph.deadline is not None
    assert graph.unique_key == made.using(unique_key=["day"]).build("sunday").unique_key


@pytest.mark.parametrize(
    ("scheduled", "reason"),
    [
        (Scheduled(Every(hours=1), args=["a", "b"]), "too many positional arguments"),
        (Scheduled(Every(hours=1), args="ab"), "args must be a list or tuple"),
        (Scheduled(Every(hours=1), kwargs={"day": object()}), "Unsupported type"),
        (Scheduled(Every(hours=1), options={"priority": 5}), "no option 'priority' of a workflow"),
        (Scheduled(Every(hours=1), options=[1]), "options must be a mapping"),  # type: ignore[arg-type]
        (Scheduled("* * * * *"), "needs a rule"),  # type: ignore[arg-type]
        (Scheduled(Every(hours=1), overlap="no"), "overlap must be one of"),
    ],
)
def test_the_system_checks_report_schedules_that_cannot_work(
    scheduled: Scheduled, reason: str
) -> None:
    made = declared(schedule=scheduled)
    with pytest.raises(InvalidSchedule, match=reason):
        check_scheduled_workflow(scheduled, made)
    messages = [str(each.msg) for each in check_schedules() if each.id == "taskqueue.E004"]
    assert any("'scheduling.made' cannot work" in each for each in messages)


def test_workflows_and_tasks_share_the_names_of_schedules() -> None:
    declared(schedule=[Scheduled(Every(hours=1), name="x"), Scheduled(Every(hours=2), name="x")])
    assert any("Two schedules are named 'x'" in str(each.msg) for each in check_schedules())
