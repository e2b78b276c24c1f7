"""Operations: the list of verbs on many tasks, and a page with the progress of each."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField, ExpressionWrapper, Q, Value
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.acts import noted, reason_of
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import WordedChoices
from taskqueue.admin.links import back
from taskqueue.admin.operations.starting import OperationStart
from taskqueue.admin.operations.undoing import label_of, undoing_of
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, live_report
from taskqueue.admin.signals import SignalAdmin
from taskqueue.control import get_operation
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.display import badge, number
from taskqueue.engine.operations.asking import requested_by, undoable
from taskqueue.engine.verbs import KNOWN_VERBS, OPERATION_VERBS
from taskqueue.engine.webhooks.replaying import REPLAY
from taskqueue.exceptions import OperationDoesNotExist, TransitionRefused
from taskqueue.models import Operation
from taskqueue.monitoring.read_models.operation import operation_details
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching.search import hidden_from, without

LONGEST_WORDS = 80
CANCEL = OPERATION_VERBS["cancel"]


class OperationAdmin(SignalAdmin, OperationStart):
    """Shows operations to users who may view them; users who may use the verb can cancel them."""

    page_template = "admin/taskqueue/operation/page.html"
    fragment_template = "admin/taskqueue/operation/fragment.html"
    routes = (
        ("start/", "start"),
        ("<uuid:object_id>/cancel/", "cancel"),
        ("<uuid:object_id>/stream/", "stream"),
    )
    columns = (
        "verb", "query", "status", "expected", "done", "requested_by", "created_at", "finished_at",
    )  # fmt: skip
    list_display = (
        "what", "shown_status", "progress", "which", "by", "created_at",
    )  # fmt: skip
    list_display_links = ("what",)
    list_filter = (("status", WordedChoices),)
    lookups = ("status__exact",)

    class Media:
        css = {"all": ["taskqueue/operations.css"]}
        js = ["taskqueue/refresh.js", "taskqueue/undo.js"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Leave out the stored choice of tasks, which may be long."""
        return (
            super()
            .get_queryset(request)
            .annotate(
                has_ids=_given("ids"),
                has_everything=_given("everything"),
                hidden_qualifiers=Value(" ".join(sorted(hidden_from(request.user)))),
            )
        )

    what = cell(gettext_lazy("Operation"), lambda operation: label_of(operation))

    @admin.display(description=gettext_lazy("Tasks"))
    def which(self, operation: Any) -> str:
        if operation.verb == REPLAY:
            return _("events of the feed")
        if operation.query:
            query = without(operation.hidden_qualifiers.split(), operation.query)
            return Truncator(query).chars(LONGEST_WORDS)
        if operation.has_ids:
            return _("chosen one by one")
        return _("all tasks") if operation.has_everything else _("by a filter")

    shown_status = cell(gettext_lazy("Status"), badge, "status")
    progress = cell(gettext_lazy("Done"), lambda operation: _of_how_many(operation))
    by = cell(gettext_lazy("By"), str, "requested_by")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page, which changes nothing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        operation = _found(object_id)
        is_open = operation.finished_at is None
        return live_report(
            self,
            request,
            (self.page_template, self.fragment_template),
            _("Operation: %(verb)s") % {"verb": label_of(operation)},
            stream_url=self.stream_url(request, operation.pk),
            operation=operation,
            progress=operation_details(operation, request.user),
            verb_label=label_of(operation),
            arguments=_arguments(operation),
            has_worker=not is_open or any(worker.is_alive for worker in read_workers()),
            may_cancel=is_open and self._may_cancel(request, operation),
            undoable=undoing_of(operation),
        )

    def events_of(self, object_id: UUID | None) -> EventFilter:
        return EventFilter.of("operation.*")

    def cancel_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Handle the cancel button of the page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        may_view = self.has_view_permission(request)
        # Whoever requested it may undo it, even without the permission to view operations.
        rows = requested_by(request.user).filter(pk=object_id)
        operation = _found(object_id) if may_view else rows.first()
        if operation is None or not self._may_cancel(request, operation):
            raise PermissionDenied
        if not (may_view or undoable(request.user).filter(pk=object_id).exists()):
            told = _("This can no longer be undone: it has begun, or has been undone.")
            self.message_user(request, told, messages.ERROR)
            return back(request, self.links.url("task_changelist"))
        reason = reason_of(request)
        try:
            ended = CANCEL.act_by(request.user, operation.id, reason=reason)
        except TransitionRefused as error:
            self.message_user(request, refused(error), messages.ERROR)
        else:
            done = CANCEL.done
            if ended.started_at is None and ended.starts_at is not None:
                done = _("Undone. Nothing was changed.")
            self.log_change(request, operation, noted(done, reason))
            self.message_user(request, str(done), messages.SUCCESS)
        if may_view:
            return back(request, self.links.url("operation_change", operation.pk))
        return back(request, self.links.url("task_changelist"))

    def _may_cancel(self, request: HttpRequest, operation: Operation) -> bool:
        verb = KNOWN_VERBS.get(operation.verb)
        return verb is not None and verb.is_for(request.user)


def _of_how_many(operation: Operation) -> str:
    """Describe the progress in a cell of a list."""
    if operation.expected is None or operation.finished_at is not None:
        return number(operation.done)
    return _("%(done)s of %(expected)s") % {
        "done": number(operation.done), "expected": number(operation.expected),
    }  # fmt: skip


def _found(object_id: object) -> Operation:
    try:
        return get_operation(str(object_id))
    except OperationDoesNotExist as error:
        raise Http404(refused(error)) from None


def _arguments(operation: Operation) -> list[tuple[str, object]]:
    """Describe the arguments of the verb."""
    given = operation.arguments
    words = {
        "run_after": _("Time"), "priority": _("Priority"), "queue_name": _("Queue"),
        "endpoint": _("Endpoint"), "since": _("Since"),
    }  # fmt: skip
    values = {**given, **given.get("changes", {})}
    values.pop("changes", None)
    return [(words.get(name, name), value) for name, value in values.items()]


def _given(name: str) -> Any:
    """Return the words for a field of a stored filter."""
    stored = Q(**{f"chosen__which__{name}__isnull": False})
    return ExpressionWrapper(stored, output_field=BooleanField())
