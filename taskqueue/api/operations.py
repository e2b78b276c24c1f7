"""Operations: one verb done to many tasks in the background, asked for, watched, called off."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.api.addresses import address
from taskqueue.api.base import ApiView
from taskqueue.api.choosing import TaskChoice, chosen
from taskqueue.api.describing import describe
from taskqueue.api.fields import Flag, Reasoned, Strict, When
from taskqueue.api.paging import NextPage, Paged, page
from taskqueue.api.problems import InvalidQuery, Problem
from taskqueue.api.tasks.option_fields import ChangeableOptions
from taskqueue.authority import leaves_out_running, may, permitted
from taskqueue.control import TaskFilter
from taskqueue.engine.operations import VERBS, Estimate, estimate, held_count
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Operation
from taskqueue.models.operation import OperationStatus
from taskqueue.permissions import OPERATE, VIEW_OPERATIONS, VIEW_TASKS
from taskqueue.states import TaskStatus

VERB_NAMES = list(VERBS)


class Changes(ChangeableOptions):
    """What `update` changes; what is left out stays."""

    backoff = None  # type: ignore[assignment]  # (It cannot be changed in the background.)


class Arguments(Strict):
    """What the verb is given: `run_after` for reschedule, `changes` for update, else nothing."""

    run_after = When(required=False, help_text="A moment, or seconds from now.")
    changes = Changes(required=False)


class Start(Reasoned, TaskChoice):
    """What is to be done, and to which tasks: exactly one of ids, filter, q and everything."""

    verb = serializers.ChoiceField(choices=VERB_NAMES)
    arguments = Arguments(required=False)
    dry_run = Flag(required=False, default=False, help_text="Only tell what it would come to: 200.")


class OperationShown(serializers.Serializer[Any]):
    """An operation and how far it is."""

    id = serializers.UUIDField()
    verb = serializers.CharField()
    query = serializers.CharField(help_text="The search as it was typed, if it was one.")
    arguments = serializers.DictField()
    status = serializers.ChoiceField(choices=[each.value for each in OperationStatus])
    is_finished = serializers.BooleanField()
    expected = serializers.IntegerField(
        allow_null=True, help_text="Tasks that fitted at its beginning; null: too many to count."
    )
    matched = serializers.IntegerField(help_text="Tasks that it has come to.")
    done = serializers.IntegerField(help_text="Those of them to which it was done.")
    error = serializers.CharField()
    requested_by = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    progressed_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class OperationWhole(OperationShown):
    """With what it will come back to."""

    held = serializers.IntegerField(help_text="Tasks in use, which it will come back to.")


class Operations(NextPage):
    """Operations, the newest first."""

    results = OperationShown(many=True)


class SampleTask(serializers.Serializer[Any]):
    """One of the tasks to which it would be done."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    queue_name = serializers.CharField()
    status = serializers.ChoiceField(choices=[each.value for each in TaskStatus])
    enqueued_at = serializers.DateTimeField()
    error_class = serializers.CharField()


class DryRun(serializers.Serializer[Any]):
    """What an operation would come to at this moment."""

    fitting = serializers.IntegerField(help_text="Tasks that fit.")
    doable = serializers.IntegerField(help_text="Those of them to which it may be done.")
    is_capped = serializers.BooleanField(help_text="Whether there may be more.")
    leaves_out_running = serializers.BooleanField(
        help_text="Whether what runs is left out, for want of the permission to stop."
    )
    sample = SampleTask(many=True)


class OperationList(ApiView):
    """All operations."""

    needs = {"GET": (VIEW_OPERATIONS,), "POST": (VIEW_TASKS,)}
    tag = "operations"
    has_etag = True
    located = (202,)

    @describe("listOperations", answers={200: Operations}, query=Paged)
    def get(self, request: Request) -> Response:
        """The newest first."""
        asked = self.asked(request, Paged)
        rows = control.operations()
        if asked["cursor"]:
            rows = rows.filter(id__lt=_cursor(asked["cursor"]))
        found = list(rows[: asked["limit"] + 1])
        kept = found[: asked["limit"]]
        following = str(kept[-1].id) if len(found) > len(kept) else None
        return self.shown(request, page(request, [_shown(each) for each in kept], following))

    @describe("startOperation", answers={200: DryRun, 202: OperationWhole}, body=Start)
    def post(self, request: Request) -> Response:
        """Have a verb done to many tasks by whichever worker has time. Needs the verb's own
        permission; who may not stop tasks cancels those alone that do not run.
        """
        given = self.told(request, Start)
        verb, arguments = given["verb"], given.get("arguments", {})
        if not may(request.user, verb):
            raise PermissionDenied
        which = permitted(chosen(given, request.user), verb, request.user)
        if given["dry_run"]:
            VERBS[verb].stored(arguments)
            found = _try(lambda: estimate(verb, which))
            left_out = leaves_out_running(verb, request.user)
            return Response(_estimated(found) | {"leaves_out_running": left_out})
        return self.once(request, lambda: self._started(request, which, given))

    def _started(self, request: Request, which: TaskFilter, given: dict[str, Any]) -> Response:
        begun = _try(
            lambda: control.start_operation(
                given["verb"], which, query=given.get("q", ""), by=request.user,
                reason=given["reason"], arguments=given.get("arguments", {}),
            )
        )  # fmt: skip
        place = address(request, "operation", begun.id)
        return Response(_whole(begun), status=202, headers={"Location": place})


class OperationDetail(ApiView):
    """One operation."""

    needs = {"GET": (VIEW_OPERATIONS,)}
    tag = "operations"
    has_etag = True

    @describe("getOperation", answers={200: OperationWhole}, problems=(404,))
    def get(self, request: Request, operation_id: str) -> Response:
        """How far it is."""
        self.asked(request)
        return self.shown(request, _whole(control.get_operation(operation_id)))


class OperationCancel(ApiView):
    """Calling an operation off."""

    needs = {"POST": (VIEW_OPERATIONS,)}
    tag = "operations"

    @describe("cancelOperation", answers={200: OperationWhole}, body=Reasoned, problems=(404, 409))
    def post(self, request: Request, operation_id: str) -> Response:
        """End it; what was done stays done. Needs the permission of its verb."""
        given = self.told(request, Reasoned)

        def act() -> Response:
            found = control.get_operation(operation_id)
            is_allowed = (
                may(request.user, found.verb)
                if found.verb in VERBS
                else request.user.has_perm(OPERATE)
            )
            if not is_allowed:
                raise PermissionDenied
            ended = control.cancel_operation(found.id, by=request.user, reason=given["reason"])
            return Response(_whole(ended))

        return self.once(request, act)


def _try(act: Any) -> Any:
    """What the act gives. Raises 422 for a choice of tasks that is none."""
    try:
        return act()
    except TaskQueueError:
        raise
    except ValueError as error:
        raise Problem(422, "invalid_filter", str(error)) from None


def _cursor(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidQuery({"cursor": ["is none that this list has given."]}) from None


def _shown(operation: Operation) -> dict[str, Any]:
    values = {"is_finished": operation.finished_at is not None}
    return {
        name: values[name] if name in values else getattr(operation, name)
        for name in OperationShown._declared_fields
    }


def _whole(operation: Operation) -> dict[str, Any]:
    is_open = operation.finished_at is None
    return {**_shown(operation), "held": held_count(operation) if is_open else 0}


def _estimated(found: Estimate) -> dict[str, Any]:
    return {
        "fitting": found.fitting,
        "doable": found.doable,
        "is_capped": found.is_capped,
        "sample": [
            {name: getattr(task, name) for name in SampleTask._declared_fields}
            for task in found.sample
        ],
    }
