"""The page that enqueues a task: choose a definition, then fill in its form."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.acts import ReasonField
from taskqueue.admin.denied import Denied
from taskqueue.admin.once import once_of
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.fields import JsonField
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.call_fields import CallForm, encode_call
from taskqueue.admin.tasks.declared import documented, fixed_options, show_declared
from taskqueue.admin.tasks.option_fields import (
    given_options,
    grouped,
    labelled_options,
    option_fields,
)
from taskqueue.admin.tasks.prefilled import prefilled
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import check_options, options_from_json
from taskqueue.declarations.own_tasks import OF_ITSELF
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore, TaskQueueError, UnknownTask
from taskqueue.results.by_hand import enqueue_by_hand


class TaskEnqueueing(TaskActs):
    """Enqueues tasks of any definition, for users who may."""

    choose_template = "admin/taskqueue/task/enqueue_choose.html"
    enqueue_template = "admin/taskqueue/task/enqueue_form.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(ENQUEUE))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form of the named definition, or a choice of definitions."""
        if not self.has_add_permission(request):
            raise Denied(ENQUEUE)
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        name = request.GET.get("name", "").strip()
        if not name:
            return self._choice(request)
        try:
            definition = registry.get(name)
        except UnknownTask as error:
            return self._choice(request, refused(error))
        is_sent = request.method == "POST"
        form = EnqueueForm(request.POST if is_sent else None, definition=definition)
        form.initial.update(prefilled(request, definition.name, form.parameters))
        answer = self._enqueue(request, form) if form.is_valid() else None
        return answer or report(
            self, request, self.enqueue_template, _("Enqueue a task"),
            form=form, name=definition.name, doc=documented(definition),
        )  # fmt: skip

    def _choice(self, request: HttpRequest, trouble: str = "") -> HttpResponse:
        found = [
            (each.name, documented(each).partition("\n")[0])
            for each in registry.all()
            if not each.name.startswith(OF_ITSELF)
        ]
        return report(
            self, request, self.choose_template, _("Enqueue a task"),
            definitions=found, trouble=trouble, name=request.GET.get("name", ""),
        )  # fmt: skip

    def _enqueue(self, request: HttpRequest, form: EnqueueForm) -> HttpResponse | None:
        """Enqueue and redirect; return None if the form shows an error."""
        data = form.cleaned_data
        who = {"by": request.user, "reason": data["reason"]}
        try:
            try:
                new_id = once_of(request)
                result = enqueue_by_hand(data["chosen"], *data["call"], **who, new_id=new_id)
            except EnqueuedBefore as found:
                first = self.lead_to_first(request, found, form.task_name)
                return self._after(request, first, form.task_name)
        except TaskQueueError as error:
            form.add_error(
                "unique_key" if isinstance(error, DuplicateTask) else None, refused(error)
            )
            return None
        if result.created or result.updated:
            created, updated = _("Enqueued."), _("The task with this unique key was updated.")
            told = created if result.created else updated
            self.tell_done(request, result.id, form.task_name, told, data["reason"])
        else:
            told = _("Nothing was enqueued: this task already holds the unique key.")
            self.message_user(request, told, messages.WARNING)
        return self._after(request, result.id, form.task_name)

    def _after(self, request: HttpRequest, task_id: UUID, name: str) -> HttpResponse:
        if self.has_view_permission(request):
            return self.links.redirect("task_change", task_id)
        return HttpResponseRedirect(f"{self.links.url('task_add')}?name={name}")


OPTIONS = labelled_options(Use.USING)


class EnqueueForm(CallForm):
    """A field for each parameter, then the options; if empty, the definition's apply."""

    options = JsonField(
        dict, label=gettext_lazy("Further options"), example='{"requires": ["gpu"]}',
        help_text=gettext_lazy(
            'JSON, as for .using(...): {"expires_after": "5m", "backoff": "fixed(60)", '
            '"retry_for": ["ConnectionError"]}. Durations are text or seconds.'
        ),
    )  # fmt: skip
    reason = ReasonField()

    def __init__(self, data: Any = None, *, definition: BaseDefinition[Any, Any]) -> None:
        super().__init__(data)
        self.fields.update(option_fields(OPTIONS, required=False))
        self.task_name = definition.name
        show_declared(self.fields, definition)
        self.fixed = fixed_options(definition)
        # With a name that templates cannot use: they would call it, and so run the body.
        self._definition = definition
        self.add_call_fields(definition)

    @property
    def option_groups(self) -> list[tuple[Any, list[Any]]]:
        """The other fields, grouped by subject."""
        groups = [(title, [self[name] for name in names]) for title, names in grouped(OPTIONS)]
        return [*groups, (_("Others"), [self["options"]])]

    @property
    def option_errors(self) -> bool:
        """Whether an option has an error."""
        return not self.errors.keys().isdisjoint((*OPTIONS, "options"))

    def clean(self) -> dict[str, Any]:
        """Check the call and the options against the definition."""
        given = self.cleaned_data
        self.check_rest()
        if self.errors:
            return given
        chosen = self._chosen(given)
        call = self.given_call()
        if chosen is not None and call is not None:
            given["chosen"], given["call"] = chosen, call
            self.attempt(None, encode_call, chosen, call)
        return given

    def _chosen(self, given: dict[str, Any]) -> BaseDefinition[Any, Any] | None:
        """Return the definition with the given options; errors are shown at their fields."""
        own = given_options(given, OPTIONS)
        for name, value in own.items():
            self.attempt(name, check_options, {name: value}, declared=False)
        further = self.attempt("options", options_from_json, given["options"])
        if further is None:
            return None
        for name in own.keys() & further.keys():
            self.add_error("options", _("%(name)s has a field of its own.") % {"name": name})
        if self.errors:
            return None
        found: BaseDefinition[Any, Any] | None
        found = self.attempt("options", self._definition.using, **{**further, **own})
        return found
