"""Releasing steps: their tasks become ready, their members and children are inserted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Q, Value, When

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.declarations.workflows.conditions import evaluate
from taskqueue.declarations.workflows.resolution import allowed_failures, calls_of
from taskqueue.engine.ready import make_ready
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.workflows.inserting import Origin, insert_rows
from taskqueue.engine.workflows.requests import call_from_json, child_graph, limited, source_of
from taskqueue.engine.workflows.results import Results
from taskqueue.engine.workflows.tasks import has_limits, keep_calls, send_members, tasks_of
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Step, Workflow

LONGEST_REASON = 1000
IS_COMPLETE = Case(
    When(Q(ended__gte=F("members")), then=Value(True)),
    default=Value(False),
)


class BeginChild(Protocol):
    """Begins the roots of a new child workflow."""

    def __call__(
        self, connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime
    ) -> None: ...


class Releaser:
    """Releases steps within one transaction, as many members as it may send."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        *,
        now: datetime,
        most_members: int | None,
        child: BeginChild,
    ) -> None:
        self._connection = connection
        self._now = now
        self._left = most_members
        self._begin_child = child
        self.has_released = False

    @property
    def is_exhausted(self) -> bool:
        """Whether no further member may be sent in this transaction."""
        return self._left is not None and self._left <= 0

    def prepare(self, workflow: Workflow, step: Step) -> StepStatus:
        """Return whether a step runs: its condition may be false, or its calls impossible."""
        results = Results(self._connection.alias, workflow.id)
        try:
            if step.when is not None and not evaluate(step.when, results.read):
                step.reason = "Its condition was false."
                return StepStatus.SKIPPED
            if step.kind == StepKind.MAP and step.members is None:
                self._make_calls(step, results)
            if step.kind == StepKind.WORKFLOW:
                self._insert_child(workflow, step)
        except InvalidWorkflow as error:
            step.reason = str(error)[:LONGEST_REASON]
            return StepStatus.FAILED
        return StepStatus.RUNNING

    def _make_calls(self, step: Step, results: Results) -> None:
        """Make the calls of a map over a result, now that it is known."""
        source = source_of(step.request)
        assert source is not None
        call = call_from_json(step.request)
        calls = calls_of(call, source, results.read, limit=get_settings().MAX_ARGUMENTS)
        keep_calls(self._connection, step.id, calls)
        step.members = len(calls)
        step.tolerated = allowed_failures(
            step.tolerate if step.tolerate < 1 else int(step.tolerate), step.members
        )
        rows = Workflow.objects.using(self._connection.alias).filter(id=step.workflow_id)
        rows.update(members=F("members") + step.members)

    def _insert_child(self, workflow: Workflow, step: Step) -> None:
        origin = Origin(parent_step_id=step.id, deadline_at=workflow.deadline_at)
        graph = child_graph(step.request)
        child = insert_rows(self._connection, graph, now=self._now, origin=origin)
        self._begin_child(self._connection, child, now=self._now)

    def release(self, workflows: Mapping[UUID, Workflow], steps: Sequence[Step]) -> None:
        """Let steps run. Those that have nothing left to run are due at once."""
        alike: dict[tuple[int | None, int, int], list[int]] = defaultdict(list)
        plain: list[int] = []
        for step in steps:
            released = 0 if step.kind == StepKind.MAP else (step.members or 0)
            alike[step.members, step.tolerated, released].append(step.id)
            if step.kind == StepKind.TASK:
                if has_limits(workflows[step.workflow_id], step):
                    self._release_limited(workflows[step.workflow_id], step)
                else:
                    plain.append(step.id)
        rows = Step.objects.using(self._connection.alias)
        for (members, tolerated, released), ids in alike.items():
            is_due = IS_COMPLETE if released == members else Value(True)
            rows.filter(id__in=ids).update(
                status=StepStatus.RUNNING,
                released_at=self._now,
                members=members,
                tolerated=tolerated,
                released=released,
                is_due=is_due,
            )
        if plain:
            blocked = tasks_of(self._connection, plain).filter(status=TaskStatus.BLOCKED)
            make_ready(blocked, now=self._now)
            self.has_released = True

    def _release_limited(self, workflow: Workflow, step: Step) -> None:
        """Release a single task with a time or limits of its own, which count from now."""
        blocked = tasks_of(self._connection, [step.id]).filter(status=TaskStatus.BLOCKED)
        columns = {"deadline_at": workflow.deadline_at}
        if "spec" in step.request:
            spec = EnqueueSpec.from_json(step.request["spec"])
            columns = limited(spec, now=self._now, deadline_at=workflow.deadline_at)
        if columns.get("status") == TaskStatus.SCHEDULED.value:
            blocked.update(**columns)
        else:
            for name in ("status", "run_after", "ready_at"):
                columns.pop(name, None)
            make_ready(blocked, now=self._now, **columns)
        self.has_released = True

    def send(self, workflow: Workflow, step: Step) -> bool:
        """Send the next members of a map, if it may have more; whether it did."""
        members = step.members or 0
        number = members - step.released
        if step.concurrency is not None:
            number = min(number, step.concurrency - (step.released - step.ended))
        if workflow.paused_at is not None or number < 0:
            number = 0
        wanted = number
        if self._left is not None:
            number = min(number, self._left)
            self._left -= number
        if number:
            number = send_members(
                self._connection,
                step,
                number,
                now=self._now,
                deadline_at=workflow.deadline_at,
            )
            self.has_released = True
        step.released += number
        rows = Step.objects.using(self._connection.alias).filter(id=step.id)
        rows.update(released=step.released, is_due=number < wanted)
        return number > 0

    def cut(self, steps: Sequence[Step]) -> bool:
        """Let maps have no more members than were sent; whether that changes any."""
        rows = Step.objects.using(self._connection.alias).filter(id__in=[step.id for step in steps])
        has_moved = any(step.released < (step.members or 0) for step in steps)
        rows.update(
            members=F("released"),
            is_due=Case(
                When(Q(ended__gte=F("released")), then=Value(True)),
                default=Value(False),
            ),
        )
        return has_moved
