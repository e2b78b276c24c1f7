"""Turn fan-outs into steps, whose results replace those of the members that returned them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from taskqueue.core.states import LeaseStatus
from taskqueue.core.workflow_states import OnFailure, StepKind, StepStatus, WorkflowStatus
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.declarations.workflows.checking import check_member_count, check_nesting
from taskqueue.declarations.workflows.graph import Arguments
from taskqueue.declarations.workflows.resolution import allowed_failures
from taskqueue.engine.dialect import execute
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.fan_outs import HEADER
from taskqueue.engine.workflows.releasing import LONGEST_REASON
from taskqueue.engine.workflows.requests import has_parts
from taskqueue.engine.workflows.tasks import chunk_of, insert_members, keep_calls
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Lease, Step, StepCalls, Workflow

# Locks: calls of leases that have succeeded, which no other session changes.
ADOPT = Statement(
    postgresql="""
        UPDATE taskqueue_stepcalls AS calls
        SET step_id = fan.step_id, lease_id = 0
        FROM unnest(%(parents)s::bigint[], %(leases)s::bigint[], %(steps)s::bigint[])
            AS fan (parent_id, lease_id, step_id)
        WHERE calls.step_id = fan.parent_id AND calls.lease_id = fan.lease_id
    """,
    sqlite="""
        UPDATE taskqueue_stepcalls AS calls
        SET step_id = json_extract(%(steps)s, '$[' || fan.key || ']'), lease_id = 0
        FROM json_each(%(leases)s) AS fan
        WHERE calls.step_id = json_extract(%(parents)s, '$[' || fan.key || ']')
            AND calls.lease_id = fan.value
    """,
)


@dataclass
class Fan:
    """A fan-out: the step and place of the member that returned it, and the member's attempt."""

    parent: Step
    place: int
    lease_id: int
    # The description from `fan_outs.described`, with the calls if there are few.
    header: Mapping[str, Any]
    # Whether this transaction sends its members.
    is_sent: bool = False

    @property
    def members(self) -> int:
        """The number of its tasks, as far as it is known."""
        return int(self.header["members"])

    @property
    def has_calls(self) -> bool:
        """Whether its header contains its calls."""
        return "calls" in self.header


class FanSteps:
    """Inserts the steps of fan-outs into workflows that the caller has locked."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        workflows: Mapping[UUID, Workflow],
        *,
        now: datetime,
        take: Callable[[int], bool],
    ) -> None:
        self._alias = connection.alias
        self._connection = connection
        self._workflows = workflows
        self._now = now
        self._take = take
        # The nesting depth of steps' members, by the ids of the steps.
        self._depths: dict[int, int] = {}

    def read(self, fans: Iterable[tuple[Step, int, UUID]]) -> dict[UUID, Fan]:
        """Return the fan-outs that members have returned, by the ids of the members' tasks."""
        found = list(fans)
        leases = self._leases([task_id for _, _, task_id in found]) if found else {}
        if not leases:
            return {}
        calls = self._calls_of({parent.id for parent, _, _ in found}, leases.values())
        headers = dict(calls.filter(first_place=HEADER).values_list("lease_id", "calls"))
        return {
            task_id: Fan(parent, place, leases[task_id], headers[leases[task_id]])
            for parent, place, task_id in found
        }

    def fits(self, fan: Fan) -> bool:
        """Return whether this transaction has room for a fan-out.

        Sets `is_sent` if it sends the members.
        """
        workflow = self._workflows[fan.parent.workflow_id]
        is_stopping = workflow.status == WorkflowStatus.STOPPING
        if workflow.is_held or is_stopping or not fan.has_calls:
            return True
        concurrency = fan.header["concurrency"]
        if has_parts(fan.header["request"]):  # They are sent later, like those of other maps.
            return True
        if concurrency is not None and concurrency < fan.members:
            return True
        fan.is_sent = self._take(fan.members)
        return fan.is_sent

    def begin(self, fans: Sequence[Fan]) -> list[Step]:
        """Insert a step for each fan-out, and insert the members that are sent now."""
        if not fans:
            return []
        made = [self._step(fan) for fan in fans]
        Step.objects.using(self._alias).bulk_create(made)
        pairs = list(zip(made, fans, strict=True))
        calls = self._calls_of({fan.parent.id for fan in fans}, [fan.lease_id for fan in fans])
        dropped = [fan.lease_id for step, fan in pairs if step.reason]
        calls.filter(Q(first_place=HEADER) | Q(lease_id__in=dropped)).delete()
        if chunked := [(step, fan) for step, fan in pairs if not fan.has_calls]:
            execute(
                self._connection,
                ADOPT,
                parents=[fan.parent.id for _, fan in chunked],
                leases=[fan.lease_id for _, fan in chunked],
                steps=[step.id for step, _ in chunked],
            )
        self._send([(step, fan) for step, fan in pairs if fan.has_calls and step.members])
        self._count(made)
        return made

    def _calls_of(self, step_ids: Collection[int], lease_ids: Iterable[int]) -> QuerySet[StepCalls]:
        calls = StepCalls.objects.using(self._alias)
        return calls.filter(step_id__in=step_ids, lease_id__in=lease_ids)

    def _leases(self, task_ids: Collection[UUID]) -> dict[UUID, int]:
        """Return the succeeded attempt of each task."""
        rows = Lease.objects.using(self._alias).filter(task_id__in=task_ids)
        succeeded = rows.filter(status=LeaseStatus.SUCCEEDED).order_by("attempt")
        return dict(succeeded.values_list("task_id", "id"))

    def _step(self, fan: Fan) -> Step:
        workflow = self._workflows[fan.parent.workflow_id]
        name = name_of(fan.parent, fan.place)
        reason = self._refusal(fan, name)
        if not reason:
            workflow.members += fan.members
        kind = StepKind(fan.header["kind"])
        members = 0 if reason else fan.members if kind is StepKind.MAP else 1
        tolerate = fan.header.get("tolerate") or 0
        is_sent = fan.is_sent or kind is StepKind.WORKFLOW
        return Step(
            workflow_id=workflow.id,
            name=name,
            kind=kind.value,
            status=StepStatus.RUNNING.value,
            taken=1,
            members=members,
            released=members if is_sent else 0,
            concurrency=fan.header.get("concurrency"),
            tolerate=tolerate,
            tolerated=allowed_failures(tolerate, members),
            is_due=members == 0 or not is_sent,
            # The step of its member decides what its failure means.
            on_failure=OnFailure.CONTINUE.value,
            request=fan.header["request"],
            parent_step_id=fan.parent.id,
            parent_place=fan.place,
            released_at=self._now,
            reason=reason,
        )

    def _send(self, steps: Sequence[tuple[Step, Fan]]) -> None:
        """Insert the members of fan-outs that are sent now, and store the calls of the others."""
        alike: dict[tuple[EnqueueSpec, datetime | None], list[tuple[int, int, Arguments]]]
        alike = defaultdict(list)
        for step, fan in steps:
            if not fan.is_sent:
                chunk = chunk_of(step.request)
                keep_calls(self._connection, step.id, fan.header["calls"], chunk=chunk)
                continue
            spec = EnqueueSpec.from_json(step.request["spec"])
            own = alike[spec, self._workflows[step.workflow_id].deadline_at]
            calls = enumerate(fan.header["calls"])
            own += [(step.id, place, (args, kwargs)) for place, (args, kwargs) in calls]
        for (spec, deadline_at), members in alike.items():
            insert_members(self._connection, spec, members, now=self._now, deadline_at=deadline_at)

    def _refusal(self, fan: Fan, name: str) -> str:
        """Return why calls cannot run; empty if they can."""
        workflow = self._workflows[fan.parent.workflow_id]
        try:
            check_nesting(self._depth(fan.parent) + 1, name)
            check_member_count(workflow.members + fan.members)
        except InvalidWorkflow as error:
            return str(error)[:LONGEST_REASON]
        return ""

    def _depth(self, step: Step) -> int:
        """Return how many workflows and fan-outs the members of a step lie within."""
        if step.id not in self._depths:
            above = self._above(step)
            self._depths[step.id] = 1 if above is None else self._depth(above) + 1
        return self._depths[step.id]

    def _above(self, step: Step) -> Step | None:
        """Return the step whose member contains this step or its workflow; None at the top."""
        steps = Step.objects.using(self._alias)
        parent_id = step.parent_step_id
        if parent_id is None:
            parent_id = self._parent_of(step.workflow_id)
            if parent_id is None:
                return None
            # A canvas that a body returned: its workflow and the step that runs it count as one
            # level.
            parent_id = steps.get(id=parent_id).parent_step_id or parent_id
        return steps.get(id=parent_id)

    def _parent_of(self, workflow_id: UUID) -> int | None:
        if workflow_id in self._workflows:
            return self._workflows[workflow_id].parent_step_id
        return Workflow.objects.using(self._alias).get(id=workflow_id).parent_step_id

    def _count(self, made: Sequence[Step]) -> None:
        """Count the new steps in their workflows."""
        for workflow_id in {step.workflow_id for step in made}:
            workflow = self._workflows[workflow_id]
            number = sum(step.workflow_id == workflow_id for step in made)
            workflow.open_steps += number
            workflow.total_steps += number
            workflow.save(using=self._alias, update_fields=["open_steps", "total_steps", "members"])


def name_of(parent: Step, place: int) -> str:
    """Return the name of the step of a fan-out.

    No declared step can have such brackets in its name.
    """
    name = f"{parent.name}[{place}]"
    if len(name) <= LONGEST_NAME:
        return name
    suffix = f"…[{parent.id}][{place}]"
    return parent.name[: LONGEST_NAME - len(suffix)] + suffix
