"""Operations: start, list, show and cancel bulk actions on tasks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.permissions import ENQUEUE, OPERATE, VIEW_OPERATIONS, VIEW_TASKS
from taskqueue.access.users import has_all
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Flag, Reasoned, Seconds, Strict
from taskqueue.api.problems import Problem, forbidden
from taskqueue.api.tasks.detail import KINDS
from taskqueue.api.tasks.filters import TaskChoice, chosen, exposed_only
from taskqueue.api.views import OneView, Paged, act_view, page, page_of, rows_after
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.operations.asking import LONGEST_DELAY
from taskqueue.engine.operations.walking import estimate
from taskqueue.engine.verbs import KNOWN_VERBS, OPERATION_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Operation
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.operation import (
    DryRun,
    OperationDetails,
    ShownOperation,
    dry_run,
    operation_details,
    shown_operation,
)


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
    delay = Seconds(
        required=False, default=0, min_value=0, max_value=LONGEST_DELAY,
        help_text="Seconds until it begins; cancel undoes it until then.",
    )  # fmt: skip
    dry_run = Flag(required=False, default=False, help_text="Only count the tasks: 200.")


Operations = page_of(ShownOperation, "Operations, the newest first.")


class OperationView(OneView):
    """One operation. If-Match compares its status, not its progress."""

    needs = {"GET": (VIEW_OPERATIONS,)}
    tag = "operations"
    compared = ("id", "status")
    answers = {200: OperationDetails}

    def find(self, key: Any) -> Operation:
        return control.get_operation(key)

    def details(self, found: Operation) -> OperationDetails:
        return operation_details(found, self.request.user)


class OperationList(OperationView):
    """All operations."""

    needs = {"GET": (VIEW_OPERATIONS,), "POST": (VIEW_TASKS,)}
    is_conditional = False
    located = (202,)

    @endpoint("listOperations", answers={200: Operations}, query=Paged)
    def get(self, request: Request) -> Response:
        """Operations, the newest first."""
        found = rows_after(control.operations(), "-id", self.parameters, UUID)
        return page(
            self, found, "id", lambda rows: [shown_operation(row, request.user) for row in rows]
        )

    @endpoint("startOperation", answers={200: DryRun, 202: OperationDetails}, body=Start)
    def post(self, request: Request) -> Response:
        """Start a verb on many tasks, which workers do in the background. It needs the permission
        of the verb. Cancel leaves out running tasks without the permission to stop; duplicate
        leaves out types that may not be enqueued over REST.
        """
        start = self.parameters
        verb, arguments = BULK_VERBS[start["verb"]], start.get("arguments", {})
        if not verb.is_for(request.user):
            raise forbidden(request.user, verb.permissions)
        which = verb.permitted(chosen(start, request.user), request.user)
        if ENQUEUE in verb.permissions:
            which = exposed_only(which)

        def act() -> Response:
            begun = control.start_operation(
                verb.name, which, query=start.get("q", ""), by=request.user,
                reason=start["reason"], arguments=arguments, delay=start["delay"],
            )  # fmt: skip
            return self.answer(begun.id, status=202, Location=self.address("operation", begun.id))

        try:
            if not start["dry_run"]:
                return self.idempotent(act)
            verb.stored(arguments)
            shown = dry_run(
                estimate(verb.name, which),
                leaves_out_running=verb.leaves_out_running(request.user),
                held_by_lost=control.count_held_by_lost(which, verb.name),
            )
            return Response(json_form(shown))
        except TaskQueueError:
            raise
        except ValueError as error:
            raise Problem(422, "invalid_filter", str(error)) from None


class OperationDetail(OperationView):
    """The state of one operation."""

    @endpoint("getOperation", answers={200: OperationDetails}, problems=(404,))
    def get(self, request: Request, operation_id: str) -> Response:
        """Return an operation and its progress."""
        return self.answer(operation_id)


class CancelView(OperationView):
    """Cancels an operation, for those who may do its verb."""

    def run(self, request: Request, key: str) -> Response:
        verb = KNOWN_VERBS.get(control.get_operation(key).verb)  # None: of another version.
        needed = (OPERATE,) if verb is None else verb.permissions
        if not has_all(request.user, needed):
            raise forbidden(request.user, needed)
        return super().run(request, key)


ACTS = {"cancel": act_view(CancelView, OPERATION_VERBS["cancel"])}
