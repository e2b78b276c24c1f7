"""The steps on a workflow's page: the table of all, and the panel of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.admin.filters import row_id
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Step, Workflow
from taskqueue.monitoring.durations import rounded_age, short_duration
from taskqueue.monitoring.history import seconds_between
from taskqueue.monitoring.read_models.step import (
    ShownMember,
    ShownStep,
    members_of,
    shown_members,
    shown_steps,
    steps_of,
)
from taskqueue.monitoring.read_models.step_errors import NARROW, UNSUCCESSFUL, unsuccessful_of
from taskqueue.reason_words import reason_words

# The most rows of the table on one page, and tasks of the chosen step.
PER_PAGE, MOST_MEMBERS = 100, 100


@dataclass(frozen=True)
class Choice:
    """A link that shows the steps of one status, or all."""

    status: str
    number: int
    url: str
    is_current: bool


@dataclass(frozen=True, kw_only=True)
class StepTable:
    """The page of steps for the address."""

    # Each with its duration, and why it was skipped or cancelled.
    rows: list[tuple[ShownStep, str, str]]
    choices: list[Choice]
    # The definition that all rows run, if the address names one.
    runs: str
    everything: str
    number: int
    page: int
    previous_url: str
    next_url: str

    @property
    def first(self) -> int:
        """The number of the first row."""
        return (self.page - 1) * PER_PAGE + 1

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1


def step_table(
    request: HttpRequest, row: Workflow, counts: Mapping[str, int], now: Any
) -> StepTable:
    """Read the page of steps for the address; unknown values in it are ignored."""
    status = request.GET.get("status", "")
    status = status if counts.get(status) else ""
    runs = request.GET.get("runs", "")
    rows: QuerySet[Any] = steps_of(row.pk)
    if runs and is_storable(runs):
        rows = rows.filter(calls=runs)
        number = (rows.filter(status=status) if status else rows).count()
    else:
        runs = ""
        number = counts[status] if status else sum(counts.values())
    if status:
        rows = rows.filter(status=status)
    pages = max(1, -(-number // PER_PAGE))
    page = min(max(row_id(request.GET.get("page", "")) or 1, 1), pages)
    found = list(rows[(page - 1) * PER_PAGE : page * PER_PAGE])
    return StepTable(
        rows=[
            (step, _took(step, now), reason_words(step.reason))
            for step in shown_steps(found, request.user)
        ],
        choices=[
            Choice("", sum(counts.values()), _url(runs=runs), not status),
            *(
                Choice(each, count, _url(status=each, runs=runs), each == status)
                for each, count in counts.items()
                if count
            ),
        ],
        runs=runs,
        everything=_url(status=status),
        number=number,
        page=page,
        previous_url=_url(status=status, runs=runs, page=page - 1) if page > 1 else "",
        next_url=_url(status=status, runs=runs, page=page + 1) if page < pages else "",
    )


def _url(**parameters: object) -> str:
    return f"?{urlencode({name: value for name, value in parameters.items() if value})}"


def _took(step: ShownStep, now: Any) -> str:
    """Return how long the step ran, or has been running."""
    if step.released_at is None:
        return ""
    if step.finished_at is not None:
        return short_duration(seconds_between(step.released_at, step.finished_at))
    return rounded_age(seconds_between(step.released_at, now))


@dataclass(frozen=True, kw_only=True)
class ChosenStep:
    """The step that the address names, with its first tasks."""

    step: ShownStep
    reason: str
    # None if the user may not view tasks.
    tasks: list[ShownMember] | None
    has_more: bool
    # Whether it can be retried and resolved by name.
    is_own: bool
    has_failed: bool


def chosen_step(request: HttpRequest, row: Workflow) -> ChosenStep | None:
    """Read the step that the address names; unsuccessful tasks come first."""
    name = request.GET.get("step", "")
    step = steps_of(row.pk).filter(name=name).first() if is_storable(name) else None
    if step is None:
        return None
    (shown,) = shown_steps([step], request.user)
    tasks = _members(step) if request.user.has_perm(VIEW_TASKS) else None
    return ChosenStep(
        step=shown,
        reason=reason_words(shown.reason),
        tasks=tasks,
        has_more=tasks is not None and step.released > len(tasks) and _runs_tasks(step),
        is_own=step.parent_step_id is None and step.compensates_id is None,
        has_failed=step.status == StepStatus.FAILED,
    )


def _runs_tasks(step: Step) -> bool:
    return step.kind in (StepKind.TASK, StepKind.MAP)


def _members(step: Step) -> list[ShownMember]:
    found = members_of(step)
    failed = list(_unsuccessful(step)) if step.failures else []
    known = {member.task_id for member in failed}
    others = [each for each in found[:MOST_MEMBERS] if each.task_id not in known]
    return shown_members([*failed, *others[: MOST_MEMBERS - len(failed)]])


def _unsuccessful(step: Step) -> QuerySet[Any]:
    found = members_of(step)
    if (step.members or 0) <= NARROW:
        return found.filter(task__status__in=UNSUCCESSFUL)[:MOST_MEMBERS]
    return found.filter(task_id__in=unsuccessful_of(step, most=MOST_MEMBERS))
