"""Releasing steps: make their tasks ready, and insert their members and children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import count, repeat
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Q, QuerySet, Value, When

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.declarations.workflows.checking import check_member_count
from taskqueue.declarations.workflows.conditions import evaluate
from taskqueue.declarations.workflows.graph import Arguments
from taskqueue.declarations.workflows.resolution import allowed_failures, calls_of
from taskqueue.engine.ready import make_ready
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.workflows.children import BeginChild, Children
from taskqueue.engine.workflows.releases import Pending, release_steps
from taskqueue.engine.workflows.requests import (
    call_from_json,
    has_parts,
    limited,
    source_of,
    spec_of_members,
)
from taskqueue.engine.workflows.results import Results
from taskqueue.engine.workflows.stopping import count_held, held_children
from taskqueue.engine.workflows.tasks import (
    BLOCKED_ONLY,
    MOST_FOUND,
    Unsent,
    cancel_blocked,
    chunk_of,
    has_limits,
    insert_members,
    keep_calls,
    send_members,
    specs_of_blocked,
    tasks_of,
)
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Step, Task, Workflow

LONGEST_REASON = 1000
# A member of a group of unlike calls may be a whole workflow, so it counts as this many tasks.
WEIGHT_OF_PART = 20
NOT_SENT = "Its step ended without it."
# The most members kept by a retry that one transaction cancels.
MOST_CUT = 1000


def has_failed(step: Step) -> bool:
    """Return whether a running step will fail, however its remaining members end."""
    return step.failures > step.tolerated or bool(step.reason)


class Releaser:
    """Releases steps within one transaction, and sends no more members than the transaction may."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        *,
        now: datetime,
        most_members: int | None,
        child: BeginChild,
        unsent: Unsent,
    ) -> None:
        self._connection = connection
        self._now = now
        self._left = most_members
        self._unsent = unsent
        self._cut_left = MOST_CUT
        self._children = Children(connection, now=now, begin=child)
        # The queues of single tasks that became ready; None if other tasks became ready.
        self.queues: set[str | None] = set()
        # Whether steps were released that have nothing left to run.
        self.has_due = False
        self.pending = Pending()

    @property
    def has_released(self) -> bool:
        """Whether any task became ready."""
        return bool(self.queues)

    @property
    def is_exhausted(self) -> bool:
        """Whether this transaction may send no more members."""
        return self._left is not None and self._left <= 0

    def take(self, number: int) -> bool:
        """Return whether `number` more members may be sent, and if so count them as sent."""
        if self._left is not None:
            if number > self._left:
                return False
            self._left -= number
        self.queues.add(None)
        return True

    def prepare(self, workflow: Workflow, step: Step) -> StepStatus:
        """Return the status that a release gives a step, and why if it does not run."""
        results = Results(self._connection.alias, workflow.id)
        try:
            if step.when is not None and not evaluate(step.when, results.read):
                step.reason = "Its condition was false."
                return StepStatus.SKIPPED
            if step.kind == StepKind.MAP and step.members is None:
                self._make_calls(workflow, step, results)
            if step.kind == StepKind.WORKFLOW:
                self._children.start(workflow, step)
        except InvalidWorkflow as error:
            step.reason = str(error)[:LONGEST_REASON]
            return StepStatus.FAILED
        return StepStatus.RUNNING

    def _make_calls(self, workflow: Workflow, step: Step, results: Results) -> None:
        """Make the calls of a map over a result that is now known; none if it is missing."""
        source = source_of(step.request)
        assert source is not None
        call = call_from_json(step.request)
        calls = []
        if not results.is_missing(source.items):
            calls = calls_of(call, source, results.read, limit=get_settings().MAX_ARGUMENTS)
        check_member_count(workflow.members + len(calls))
        keep_calls(self._connection, step.id, calls, chunk=chunk_of(step.request))
        step.members = len(calls)
        step.tolerated = allowed_failures(
            step.tolerate if step.tolerate < 1 else int(step.tolerate), step.members
        )
        workflow.members += step.members
        workflow.save(using=self._connection.alias, update_fields=["members"])

    def begin(self, workflows: Mapping[UUID, Workflow], steps: Sequence[Step]) -> None:
        """Begin steps that were inserted as running: their children need the rows of the steps."""
        for step in steps:
            if step.kind != StepKind.WORKFLOW or step.reason:
                continue
            if self.prepare(workflows[step.workflow_id], step) is StepStatus.FAILED:
                rows = Step.objects.using(self._connection.alias).filter(id=step.id)
                rows.update(reason=step.reason, members=0, released=0, is_due=True)

    def release(self, workflows: Mapping[UUID, Workflow], steps: Sequence[Step]) -> None:
        """Release steps. Those that have nothing left to run become due in this transaction.

        The others are written by `release_pending`, or together with the progress of their
        workflows.
        """
        plain: list[int] = []
        has_due = False
        for step in steps:
            if step.kind != StepKind.MAP:
                step.released = step.members or 0
            waits_for_ends = step.released - step.held == (step.members or 0) > step.ended
            has_due = has_due or not waits_for_ends
            if step.kind == StepKind.TASK:
                if has_limits(workflows[step.workflow_id], step):
                    self._release_limited(workflows[step.workflow_id], step)
                else:
                    plain.append(step.id)
        self.pending.steps += steps
        self.pending.plain += plain
        if has_due:
            self.has_due = True
            self.release_pending()

    def release_pending(self) -> None:
        """Write the releases that `release` has put off."""
        pending, self.pending = self.pending, Pending()
        if pending.steps:
            self.queues |= release_steps(self._connection, pending, now=self._now)

    def _release_limited(self, workflow: Workflow, step: Step, *, number: int = MOST_FOUND) -> int:
        """Release blocked tasks that have their own times or limits; times count from now."""
        released = 0
        for blocked in tasks_of(self._connection, [step.id], BLOCKED_ONLY, limit=number):
            if has_parts(step.request):
                alike = specs_of_blocked(self._connection, step, blocked)
                released += sum(self._release_by(spec, workflow, tasks) for spec, tasks in alike)
            else:
                stored = step.request.get("spec")
                spec = None if stored is None else EnqueueSpec.from_json(stored)
                released += self._release_by(spec, workflow, blocked)
        self.queues.add(None)
        return released

    def _release_by(
        self, spec: EnqueueSpec | None, workflow: Workflow, blocked: QuerySet[Task]
    ) -> int:
        columns = {"deadline_at": workflow.deadline_at}
        if spec is not None:
            columns = limited(spec, now=self._now, deadline_at=workflow.deadline_at)
        if columns.get("status") == TaskStatus.SCHEDULED.value:
            return blocked.update(**columns)
        for name in ("status", "run_after", "ready_at"):
            columns.pop(name, None)
        return make_ready(blocked, now=self._now, **columns)

    def send(self, workflow: Workflow, step: Step) -> bool:
        """Send the next members of a map as its concurrency allows.

        Return whether any were sent.
        """
        members = step.members or 0
        if step.concurrency is not None and step.held and step.failures:
            # A member that was cancelled while it waited has ended without being sent again.
            step.held = count_held(self._connection, step.id)
        number = members - step.released + step.held
        if step.concurrency is not None:
            number = min(number, step.concurrency - (step.released - step.held - step.ended))
        if workflow.is_held or number < 0:
            number = 0
        wanted = number
        if self._left is not None:
            weight = WEIGHT_OF_PART if has_parts(step.request) else 1
            number = min(number, -(-max(self._left, 0) // weight))
            self._left -= number * weight
        again = min(number, step.held)
        if again:
            left = again - self._release_limited(workflow, step, number=again)
            if left and has_parts(step.request):
                for child in held_children(self._connection, [step.id])[:left]:
                    self._children.begin_again(child)
        if calls := self._unsent.get(step.id):
            number = self._send_at_once(workflow, step, calls)
        elif number > again:
            number = again + send_members(
                self._connection,
                step,
                number - again,
                now=self._now,
                deadline_at=workflow.deadline_at,
                send_child=partial(self._children.send, workflow, step),
            )
            self.queues.add(None)
        step.held -= again
        step.released += number - again
        rows = Step.objects.using(self._connection.alias).filter(id=step.id)
        rows.update(released=step.released, held=step.held, is_due=number < wanted)
        return number > 0

    def _send_at_once(self, workflow: Workflow, step: Step, calls: Sequence[Arguments]) -> int:
        """Send all members of a map that begins with its workflow."""
        members = zip(repeat(step.id), count(), calls)
        insert_members(
            self._connection, spec_of_members(step.request, None), members,
            now=self._now, deadline_at=workflow.deadline_at,
        )  # fmt: skip
        self.queues.add(None)
        return len(calls)

    def cut(self, steps: Sequence[Step]) -> bool:
        """Limit maps to the members that were sent. Return whether that changes any map.

        Members that were to be sent again are cancelled, in several transactions if there are many.
        """
        rows = Step.objects.using(self._connection.alias).filter(id__in=[step.id for step in steps])
        has_moved = any(step.released < (step.members or 0) for step in steps)
        for step in steps:
            if step.held:
                self._cancel_held(step)
            if step.reason or step.held:
                rows.filter(id=step.id).update(reason=step.reason, held=step.held)
        rows.update(members=F("released"))
        done = rows.filter(id__in=[step.id for step in steps if not step.held])
        done.update(
            held=0,
            is_due=Case(
                When(Q(ended__gte=F("released")), then=Value(True)),
                default=Value(False),
            ),
        )
        return has_moved

    def _cancel_held(self, step: Step) -> None:
        """Cancel members that were to be sent again, as many as one transaction may.

        A step with more of them stays due.
        """
        if not self._cut_left:
            return
        most = self._cut_left
        number, _ = cancel_blocked(self._connection, [step.id], limit=most)
        self._cut_left -= number
        if number == most:
            step.held = max(0, step.held - number)
            return
        if has_parts(step.request):
            self._children.end_held(step)
        step.held = 0
