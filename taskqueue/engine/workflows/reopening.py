"""Having steps wait again that have ended: their rows, their tasks, and what they had begun."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.engine import multi_worker
from taskqueue.engine.dialect import select
from taskqueue.engine.ready import make_blocked
from taskqueue.engine.workflows.pruning import delete_below
from taskqueue.engine.workflows.reconciling import COUNTED
from taskqueue.engine.workflows.requests import has_parts, source_of
from taskqueue.engine.workflows.results import RESOLVED
from taskqueue.engine.workflows.stopping import held_children
from taskqueue.engine.workflows.tasks import BLOCKED_ONLY, tasks_of
from taskqueue.models import Step, StepCalls, StepEnd, Task, Workflow

# Steps or tasks of one statement.
BATCH = 2000
FAILED_TASKS = FINISHED - {TaskStatus.SUCCEEDED}
# Of a step that waits again.
WAITING: dict[str, Any] = {
    "status": StepStatus.WAITING, "released_at": None, "finished_at": None, "reason": "",
    "is_due": False, "ended": 0, "failures": 0,
}  # fmt: skip
# What a map keeps of its members.
KEPT = ("members", "released", "held", "request")


class Reopener:
    """Has steps of one locked workflow wait again; `steps` are its locked steps by id."""

    def __init__(
        self, connection: BaseDatabaseWrapper, workflow: Workflow, steps: dict[int, Step]
    ) -> None:
        self._connection = connection
        self._workflow = workflow
        self._steps = steps

    def reopen(self, again: Collection[int], anew: Collection[int]) -> None:
        """Have the first wait with their tasks that did not succeed, the others with all.

        Fan-outs of the others are deleted, also those that are among the first.
        """
        self._drop(anew)
        chosen = [self._steps[id] for id in sorted({*again, *anew}) if id in self._steps]
        self._block_tasks(chosen, anew)
        changed = [step for step in chosen if self._reset(step)]
        rows = Step.objects.using(self._connection.alias)
        ids = [step.id for step in chosen]
        for first in range(0, len(ids), BATCH):
            rows.filter(id__in=ids[first : first + BATCH]).update(**WAITING)
        rows.bulk_update(changed, KEPT, batch_size=200)
        self._count(chosen)

    def reopen_task(self, step: Step, task_id: UUID) -> None:
        """Have a member of a running step be sent again that did not succeed."""
        tasks = Task.objects.using(self._connection.alias).filter(id=task_id)
        step.held += self._block(tasks.filter(status__in=sorted(FAILED_TASKS)))
        step.members = self._members(step)
        step.is_due = True
        step.save(using=self._connection.alias, update_fields=[*KEPT, "is_due"])
        self._count([step])

    def _drop(self, anew: Collection[int]) -> None:
        """Delete what belongs to one run of these steps: fan-outs, children, and made calls."""
        made = [id for id in anew if source_of(self._steps[id].request) is not None]
        unlike = [id for id in anew if has_parts(self._steps[id].request)]
        gone = delete_below(self._connection, list(anew), [*made, *unlike])
        # Those of unlike members are kept, and send them anew.
        StepCalls.objects.using(self._connection.alias).filter(step_id__in=made).delete()
        for id in gone:
            step = self._steps.pop(id)
            self._workflow.members -= step.members or 0
            self._workflow.total_steps -= 1
        for id in made:
            step = self._steps[id]
            self._workflow.members -= step.members or 0
            step.members, step.released = None, 0
        for id in unlike:
            self._steps[id].released = 0

    def _block_tasks(self, steps: Sequence[Step], anew: Collection[int]) -> None:
        """Have the finished tasks of these steps wait: all of them, or those without success."""
        notes = StepEnd.objects.using(self._connection.alias)
        for is_anew, statuses in ((False, FAILED_TASKS), (True, FINISHED)):
            ids = [step.id for step in steps if (step.id in anew) == is_anew]
            for first in range(0, len(ids), BATCH):
                own = ids[first : first + BATCH]
                notes.filter(step_id__in=own).delete()
                for tasks in tasks_of(self._connection, own, statuses):
                    self._block(tasks)

    def _block(self, tasks: QuerySet[Task]) -> int:
        """Lock finished tasks and have them wait; how many."""
        ids = list(tasks.order_by("id").select_for_update().values_list("id", flat=True))
        own: QuerySet[Task] = Task.objects.using(self._connection.alias).filter(id__in=ids)
        make_blocked(own)
        for task in own.exclude(workers=1, broadcast=False):
            multi_worker.begin_anew(self._connection, task)
        return len(ids)

    def _reset(self, step: Step) -> bool:
        """Have the step wait as if it had not begun; whether more of it changes than `WAITING`."""
        for name, value in WAITING.items():
            setattr(step, name, value)
        is_made = source_of(step.request) is not None
        was_resolved = step.request.pop(RESOLVED, self) is not self
        if step.kind == StepKind.MAP and step.members is not None:
            step.members = self._members(step)
            blocked = tasks_of(self._connection, [step.id], BLOCKED_ONLY)
            children = held_children(self._connection, [step.id])
            step.held = sum(tasks.count() for tasks in blocked) + children.count()
        return step.kind == StepKind.MAP or is_made or was_resolved

    def _members(self, step: Step) -> int:
        """Return how many members a map has, those too that its failure kept from being sent."""
        kept = StepCalls.objects.using(self._connection.alias)
        last = kept.filter(step_id=step.id, lease_id=0).order_by("first_place").last()
        return max(step.released, 0 if last is None else last.first_place + len(last.calls))

    def _count(self, steps: Sequence[Step]) -> None:
        """Count what has ended of these steps, and of those that they are members of."""
        counted = {step.id: step for step in steps if step.kind != StepKind.WORKFLOW}
        for step in steps:
            if step.parent_step_id is not None and step.parent_step_id in self._steps:
                counted[step.parent_step_id] = self._steps[step.parent_step_id]
        ids = {"steps": sorted(counted), "workflows": [self._workflow.id.hex]}
        found = {row[0]: row[1:] for row in select(self._connection, COUNTED, **ids)}
        moved = []
        for id, step in counted.items():
            before = step.ended, step.failures
            step.ended, step.failures = map(int, found.get(id, (0, 0)))
            if before != (step.ended, step.failures):
                moved.append(step)
        rows = Step.objects.using(self._connection.alias)
        rows.bulk_update(moved, ["ended", "failures"], batch_size=200)
