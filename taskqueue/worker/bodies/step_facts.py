"""The workflow and step of an attempt, for its span and its log records."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef

from taskqueue.core.workflow_states import StepKind
from taskqueue.engine.connections import database_alias
from taskqueue.models import Dependency, Member, Step, Task, TaskLog

# The logger of the lines in which attempts of steps name their spans, for later steps.
SPAN_LOGGER = "taskqueue.tracing"
# The most consecutive joins that are skipped.
MOST_JOINS = 5


class StepFacts(NamedTuple):
    """The step of a workflow that a task belongs to."""

    step_id: int
    step: str
    workflow_id: UUID
    # Whether other steps wait for it.
    is_awaited: bool


def step_facts(task_id: str) -> StepFacts | None:
    """Return the place of a task in its workflow, by one query."""
    awaited = Dependency.objects.filter(upstream_id=OuterRef("step_id"))
    tasks = Task.objects.using(database_alias()).filter(id=task_id, step__isnull=False)
    columns = "step_id", "step__name", "step__workflow_id", Exists(awaited)
    row = tasks.values_list(*columns).first()
    return None if row is None else StepFacts(*row)


def upstream_spans(step_id: int, *, most: int) -> list[str]:
    """Return the spans of the tasks that a step waited for, if it waited for several.

    A step behind a single task needs no links: both belong to one trace, one after the other.
    """
    alias = database_alias()
    members = Member.objects.using(alias).filter(step_id__in=_upstream(step_id, alias))
    task_ids = list(members.order_by("step_id", "place").values_list("task_id", flat=True)[:most])
    if len(task_ids) < 2:
        return []
    lines = TaskLog.objects.using(alias).filter(task_id__in=task_ids, logger=SPAN_LOGGER)
    # Of several attempts, the last one counts.
    latest = dict(lines.order_by("id").values_list("task_id", "message"))
    return [latest[task_id] for task_id in task_ids if task_id in latest]


def _upstream(step_id: int, alias: str) -> list[int]:
    """Return the steps before a step. A join has no task, so the steps before it take its place."""
    found: list[int] = []
    wanted = [step_id]
    for _ in range(MOST_JOINS):
        needs = Dependency.objects.using(alias).filter(downstream_id__in=wanted)
        steps = Step.objects.using(alias).filter(id__in=needs.values("upstream_id"))
        kinds = list(steps.values_list("id", "kind"))
        found += [each for each, kind in kinds if kind != StepKind.JOIN]
        wanted = [each for each, kind in kinds if kind == StepKind.JOIN]
        if not wanted:
            break
    return found
