"""Reopen steps that have ended, with their tasks and everything that they had started.

The retry changes the rows of all steps. Their tasks follow in the advance, a limited number per
transaction; the next transaction continues from the place that the step stores. A step is not
completed before all of its tasks are waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.core.workflow_states import FINAL_STEPS, StepKind, StepStatus, WorkflowStatus
from taskqueue.engine import multi_worker
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.ready import make_blocked
from taskqueue.engine.workflows.counting import counted
from taskqueue.engine.workflows.discarding import discard_below, discard_steps
from taskqueue.engine.workflows.pruning import delete_members
from taskqueue.engine.workflows.requests import child_graph, has_parts, source_of
from taskqueue.engine.workflows.results import RESOLVED
from taskqueue.engine.workflows.stopping import count_held
from taskqueue.engine.workflows.tasks import find_tasks
from taskqueue.models import Member, Step, StepCalls, StepEnd, Task, Workflow

# The most tasks of one transaction.
MOST_REOPENED = 2000
# The most steps of one statement.
BATCH = 2000
FAILED_TASKS = FINISHED - {TaskStatus.SUCCEEDED}
# The values of a step that waits again.
WAITING: dict[str, Any] = {
    "status": StepStatus.WAITING, "released_at": None, "finished_at": None, "reason": "",
    "ended": 0, "failures": 0, "reopen_from": 0,
}  # fmt: skip
# The fields about its members that a reopened map saves.
KEPT = ("members", "released", "held", "request")
# The counted fields of a step.
COUNTS = ("held", "ended", "failures")


class Reopener:
    """Sets steps of one locked workflow to waiting again; `steps` are its locked steps by id."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        workflow: Workflow,
        steps: dict[int, Step],
        *,
        now: datetime,
    ) -> None:
        self._connection = connection
        self._workflow = workflow
        self._steps = steps
        self._now = now

    def reopen(self, again: Collection[int], anew: Collection[int]) -> None:
        """Reopen the steps `again` with their unsuccessful tasks, and `anew` with all tasks.

        Fan-outs of `anew` steps are discarded, also those that are in `again`. `reopen_some` must
        follow: at once, or for a child when it begins again.
        """
        begins = (
            self._workflow.parent_step_id is None or self._workflow.status == WorkflowStatus.RUNNING
        )
        self._drop(anew)
        self._drop_refused(again)
        chosen = [self._steps[id] for id in sorted({*again, *anew}) if id in self._steps]
        changed = [step for step in chosen if self._reset(step, is_anew=step.id in anew)]
        rows = Step.objects.using(self._connection.alias)
        notes = StepEnd.objects.using(self._connection.alias)
        for is_anew in (False, True):
            ids = [step.id for step in chosen if step.reopens_all is is_anew]
            for first in range(0, len(ids), BATCH):
                own = ids[first : first + BATCH]
                rows.filter(id__in=own).update(**WAITING, reopens_all=is_anew, is_due=begins)
                notes.filter(step_id__in=own).delete()
        rows.bulk_update(changed, KEPT, batch_size=200)
        self._count_parents(chosen)

    def reopen_task(self, step: Step, task_id: UUID) -> None:
        """Make an unsuccessful member of a running step wait to be sent again."""
        tasks = Task.objects.using(self._connection.alias).filter(id=task_id)
        step.held += _block(self._connection, tasks.filter(status__in=sorted(FAILED_TASKS)))
        step.members = _members(self._connection, step)
        step.is_due = True
        step.save(using=self._connection.alias, update_fields=[*KEPT, "is_due"])
        save_counts(self._connection, [step])

    def _drop(self, anew: Collection[int]) -> None:
        """Discard the fan-outs, children and computed calls of the last run of these steps."""
        made = [id for id in anew if source_of(self._steps[id].request) is not None]
        gone = discard_below(self._connection, self._workflow, list(anew), now=self._now)
        for id in (*gone, *made):
            self._workflow.members -= counted_members(self._connection, self._steps[id])
        for id in gone:
            del self._steps[id]
        self._workflow.total_steps -= len(gone)
        # Calls of unlike members are kept, to be sent anew.
        StepCalls.objects.using(self._connection.alias).filter(step_id__in=made).delete()
        for id in made:
            self._steps[id].members, self._steps[id].released = None, 0
        for id in anew:
            if has_parts(self._steps[id].request):
                self._steps[id].released = 0

    def _drop_refused(self, again: Collection[int]) -> None:
        """Discard fan-outs that could not run, and reopen the tasks that returned them."""
        steps = [self._steps[id] for id in again if id in self._steps]
        refused = [step for step in steps if _was_refused(self._connection, step)]
        if not refused:
            return
        ids = [step.id for step in refused]
        discard_steps(self._connection, self._workflow, ids, now=self._now)
        self._workflow.total_steps -= len(refused)
        members = Member.objects.using(self._connection.alias)
        tasks = Task.objects.using(self._connection.alias)
        for step in refused:
            del self._steps[step.id]
            own = members.filter(step_id=step.parent_step_id or 0, place=step.parent_place or 0)
            _block(self._connection, tasks.filter(id__in=own.values("task_id")))

    def _reset(self, step: Step, *, is_anew: bool) -> bool:
        """Reset the fields of a step. Return whether more of it changes than `WAITING` holds."""
        for name, value in WAITING.items():
            setattr(step, name, value)
        step.reopens_all = is_anew
        is_made = source_of(step.request) is not None
        was_resolved = step.request.pop(RESOLVED, self) is not self
        if step.kind == StepKind.MAP and step.members is not None:
            step.members = _members(self._connection, step)
        return step.kind == StepKind.MAP or is_made or was_resolved

    def _count_parents(self, steps: Sequence[Step]) -> None:
        """Count the members anew of the steps whose fan-outs are among `steps`."""
        ids = {step.parent_step_id for step in steps}
        above = [step for id, step in sorted(self._steps.items()) if id in ids]
        save_counts(self._connection, [step for step in above if step.reopen_from is None])


def reopen_some(
    connection: BaseDatabaseWrapper, steps: Sequence[Step], *, most: int
) -> tuple[list[Step], int]:
    """Reopen up to `most` tasks of steps that wait for it.

    Return the steps that have no more tasks to reopen, and how many tasks were reopened. The caller
    has locked their workflows. A step with more tasks stays due.
    """
    done: list[Step] = []
    moved = 0
    narrow: dict[bool, list[Step]] = {False: [], True: []}
    left = most
    for step in sorted(steps, key=attrgetter("id")):
        if step.kind == StepKind.MAP:
            continue
        if left <= 0:
            break
        narrow[step.reopens_all].append(step)
        left -= 1
    for reopens_all, alike in narrow.items():
        moved += _block_of(connection, alike, reopens_all=reopens_all)
        done += alike
    for step in sorted(steps, key=attrgetter("id")):
        if step.kind != StepKind.MAP or moved >= most:
            continue
        number = _reopen_map(connection, step, most - moved)
        moved += number
        if step.reopen_from is None:
            done.append(step)
    _finish(connection, done)
    return done, moved


def _block_of(connection: BaseDatabaseWrapper, steps: Sequence[Step], *, reopens_all: bool) -> int:
    """Reopen the tasks of steps that are not maps. Return how many were reopened."""
    statuses = FINISHED if reopens_all else FAILED_TASKS
    found = find_tasks(connection, [step.id for step in steps], statuses)
    ids = [as_uuid(id) for id, *_ in found]
    for step in steps:
        step.reopen_from = None
    return _block(connection, Task.objects.using(connection.alias).filter(id__in=ids))


def _reopen_map(connection: BaseDatabaseWrapper, step: Step, most: int) -> int:
    """Reopen tasks of a map, or delete those that it makes anew. Return how many."""
    if step.reopens_all and (source_of(step.request) is not None or has_parts(step.request)):
        number = delete_members(connection, step.id, most)
        if number < most:
            step.reopen_from = None
        return number
    statuses = FINISHED if step.reopens_all else FAILED_TASKS
    start = step.reopen_from or 0
    found = find_tasks(connection, [step.id], statuses, start=start, limit=most)
    ids = [as_uuid(id) for id, *_ in found]
    _block(connection, Task.objects.using(connection.alias).filter(id__in=ids))
    step.reopen_from = found[-1][2] + 1 if len(found) == most else None
    if step.reopen_from is not None:
        rows = Step.objects.using(connection.alias).filter(id=step.id)
        rows.update(reopen_from=step.reopen_from)
    return len(found)


def _block(connection: BaseDatabaseWrapper, tasks: QuerySet[Task]) -> int:
    """Lock finished tasks and make them blocked. Return how many there were."""
    ids = list(tasks.order_by("id").select_for_update().values_list("id", flat=True))
    own: QuerySet[Task] = Task.objects.using(connection.alias).filter(id__in=ids)
    make_blocked(own)
    for task in own.exclude(workers=1, broadcast=False):
        multi_worker.begin_anew(connection, task)
    return len(ids)


def _finish(connection: BaseDatabaseWrapper, steps: Sequence[Step]) -> None:
    """Count the members of completely reopened steps, and let the advance decide on them."""
    for step in steps:
        if step.kind == StepKind.MAP and step.members is not None:
            step.held = count_held(connection, step.id)
    save_counts(connection, [step for step in steps if step.kind != StepKind.WORKFLOW])
    rows = Step.objects.using(connection.alias)
    for first in range(0, len(steps), BATCH):
        ids = [step.id for step in steps[first : first + BATCH]]
        rows.filter(id__in=ids).update(reopen_from=None, is_due=False)


def save_counts(connection: BaseDatabaseWrapper, steps: Sequence[Step]) -> None:
    """Count the ended members of these steps, whose workflows the caller has locked."""
    if not steps:
        return
    members = {step.id: step.members or 0 for step in steps}
    found = counted(connection, members, sorted({step.workflow_id for step in steps}))
    changed = []
    for step in steps:
        before = step.ended, step.failures
        step.ended, step.failures = found[step.id]
        if step.held or before != (step.ended, step.failures):
            changed.append(step)
    Step.objects.using(connection.alias).bulk_update(changed, COUNTS, batch_size=200)


def counted_members(connection: BaseDatabaseWrapper, step: Step) -> int:
    """Return how many members its workflow counts for a fan-out or a map over a result."""
    if not step.members and step.kind != StepKind.MAP:  # A fan-out that was refused.
        return 0
    if step.kind == StepKind.WORKFLOW:
        return child_graph(step.request).members
    was_cut = step.status in FINAL_STEPS and step.status != StepStatus.SUCCEEDED
    return _members(connection, step) if was_cut else step.members or 0


def _was_refused(connection: BaseDatabaseWrapper, step: Step) -> bool:
    """Return whether a body returned calls that could not run; none of them is kept."""
    has_none = step.parent_step_id is not None and not step.members
    return has_none and (step.kind != StepKind.MAP or not _members(connection, step))


def _members(connection: BaseDatabaseWrapper, step: Step) -> int:
    """Return how many members a map has, including those that its failure kept from being sent."""
    kept = StepCalls.objects.using(connection.alias)
    last = kept.filter(step_id=step.id, lease_id=0).order_by("first_place").last()
    return max(step.released, 0 if last is None else last.first_place + len(last.calls))
