"""Operations: start, list, show and cancel bulk actions on tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.permissions import ENQUEUE, OPERATE, VIEW_OPERATIONS, VIEW_TASKS
from taskqueue.api.acts import Act, act_view
from taskqueue.api.addresses import address
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import part_of
from taskqueue.api.fields import Flag, Reasoned, Strict
from taskqueue.api.paging import Paged, page, page_of, rows_after
from taskqueue.api.problems import Problem
from taskqueue.api.serializing import serializer_for
from taskqueue.api.tasks.acts import KINDS
from taskqueue.api.tasks.filters import TaskChoice, chosen, exposed_only
from taskqueue.control import TaskFilter
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.operations import estimate
from taskqueue.engine.verbs import OPERATION_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Operation
from taskqueue.monitoring.read_models.operation import (
    DryRun,
    OperationDetails,
    ShownOperation,
    dry_run,
    operation_details,
    shown_operation,
)

OperationWholeJSON = serializer_for(OperationDetails)
DryRunJSON = serializer_for(DryRun)


class Arguments(Strict):
    """Arguments of the verb: `run_after` for reschedule, `changes` for update, else none."""

    def get_fields(self) -> dict[str, Any]:
        return {
            parameter.name: KINDS[parameter.kind](required=False)
            for verb in BULK_VERBS.values()
            for parameter in verb.parameters
        }


class Start(Reasoned, TaskChoice):
    """The verb and its tasks: exactly one of ids, filter, q and everything."""

    verb = serializers.ChoiceField(choices=list(BULK_VERBS))
    arguments = Arguments(required=False)
    dry_run = Flag(required=False, default=False, help_text="Only count the tasks: 200.")


Operations = page_of(ShownOperation, "Operations, the newest first.")


class OperationList(ApiView):
    """All operations."""

    needs = {"GET": (VIEW_OPERATIONS,), "POST": (VIEW_TASKS,)}
    tag = "operations"
    has_etag = True
    located = (202,)

    @describe("listOperations", answers={200: Operations}, query=Paged)
    def get(self, request: Request) -> Response:
        """Operations, the newest first."""
        asked = self.validated_query(request, Paged)
        found = rows_after(control.operations(), "-id", asked, UUID)

        def show(rows: Sequence[Operation]) -> list[ShownOperation]:
            return [shown_operation(row, request.user) for row in rows]

        return self.shown(request, page(request, Operations, asked, found, "id", show))

    @describe("startOperation", answers={200: DryRunJSON, 202: OperationWholeJSON}, body=Start)
    def post(self, request: Request) -> Response:
        """Start a verb on many tasks, which workers do in the background. It needs the permission
        of the verb. Cancel leaves out running tasks without the permission to stop; duplicate
        leaves out types that may not be enqueued over REST.
        """
        given = self.validated_body(request, Start)
        verb, arguments = BULK_VERBS[given["verb"]], given.get("arguments", {})
        if not verb.is_for(request.user):
            raise PermissionDenied
        which = verb.permitted(chosen(given, request.user), request.user)
        if ENQUEUE in verb.permissions:
            which = exposed_only(which)
        if given["dry_run"]:
            verb.stored(arguments)
            found = _try(lambda: estimate(verb.name, which))
            shown = dry_run(
                found,
                leaves_out_running=verb.leaves_out_running(request.user),
                held_by_lost=control.count_held_by_lost(which, verb.name),
            )
            return Response(DryRunJSON(shown).data)
        return self.idempotent(request, lambda: self._started(request, which, given))

    def _started(self, request: Request, which: TaskFilter, given: dict[str, Any]) -> Response:
        begun = _try(
            lambda: control.start_operation(
                given["verb"], which, query=given.get("q", ""), by=request.user,
                reason=given["reason"], arguments=given.get("arguments", {}),
            )
        )  # fmt: skip
        place = address(request, "operation", begun.id)
        return _answer(self, request, begun, status=202, Location=place)


class OperationDetail(ApiView):
    """One operation."""

    needs = {"GET": (VIEW_OPERATIONS,)}
    tag = "operations"
    has_etag = True

    @describe("getOperation", answers={200: OperationWholeJSON}, problems=(404,))
    def get(self, request: Request, operation_id: str) -> Response:
        """Return an operation and its progress."""
        self.validated_query(request)
        return _answer(self, request, control.get_operation(operation_id))


class CancelAct(Act):
    """Cancel an operation."""

    tag = "operations"
    answers = {200: OperationWholeJSON}

    def check(self, request: Request, key: str, given: dict[str, Any]) -> None:
        if not _may_cancel(request.user, control.get_operation(key)):
            raise PermissionDenied

    def part(self, row: Operation) -> str:
        return _part(row)

    def answer(self, request: Request, key: str, result: Operation) -> Response:
        return _answer(self, request, result)


OperationCancel = act_view(CancelAct, OPERATION_VERBS["cancel"], looks=(VIEW_OPERATIONS,))


def _may_cancel(user: Any, operation: Operation) -> bool:
    if operation.verb in BULK_VERBS:
        return BULK_VERBS[operation.verb].is_for(user)
    return bool(user.has_perm(OPERATE))  # Of another version.


def _answer(
    view: ApiView, request: Request, operation: Operation, *, status: int = 200, **headers: str
) -> Response:
    """Answer with the operation. If-Match compares its status, not its progress."""
    details = OperationWholeJSON(operation_details(operation, request.user)).data
    return view.shown(request, details, status=status, headers=headers, part=_part(operation))


def _part(operation: Operation) -> str:
    """The beginning of its ETag, which stands for its status."""
    return part_of([operation.id, operation.status])


def _try(act: Any) -> Any:
    """Return the result of the act. Raises 422 for an invalid choice of tasks."""
    try:
        return act()
    except TaskQueueError:
        raise
    except ValueError as error:
        raise Problem(422, "invalid_filter", str(error)) from None
