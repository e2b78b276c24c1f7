"""The page that enqueues a task: choose a definition, then fill in its form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.acts import ReasonField
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.fields import JsonField
from taskqueue.admin.tasks.acts import TaskActs, new_id_of
from taskqueue.admin.tasks.option_fields import given_options, labelled_options, option_fields
from taskqueue.admin.tasks.parameter_fields import (
    PREFIX,
    field_name,
    field_of,
    is_left_out,
    needs_null_box,
    null_name,
)
from taskqueue.admin.tasks.prefilled import prefilled
from taskqueue.core.uuid7 import uuid7
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import options_from_json
from taskqueue.declarations.parameters import call_of, parameters
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore, TaskQueueError, UnknownTask
from taskqueue.results.by_hand import enqueue_by_hand

# Definitions of taskqueue itself, which nobody enqueues by hand.
OF_ITSELF = "taskqueue."


class TaskEnqueueing(TaskActs):
    """Enqueue a task of any definition, for users who may."""

    choose_template = "admin/taskqueue/task/enqueue_choose.html"
    enqueue_template = "admin/taskqueue/task/enqueue_form.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(ENQUEUE))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form of the named definition, or the choice of one."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        name = request.GET.get("name", "").strip()
        if not name:
            return self._choice(request)
        try:
            definition = registry.get(name)
        except UnknownTask as error:
            return self._choice(request, str(error))
        is_sent = request.method == "POST"
        form = EnqueueForm(request.POST if is_sent else None, definition=definition)
        form.initial.update(prefilled(request, definition.name, form.parameters))
        answer = self._enqueue(request, form) if form.is_valid() else None
        return answer or report(
            self, request, self.enqueue_template, _("Enqueue a task"),
            form=form, name=definition.name, doc=_doc(definition), once=uuid7(),
        )  # fmt: skip

    def _choice(self, request: HttpRequest, trouble: str = "") -> HttpResponse:
        found = [
            (each.name, _doc(each).partition("\n")[0])
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
                new_id = new_id_of(request)
                result = enqueue_by_hand(data["chosen"], *data["call"], **who, new_id=new_id)
            except EnqueuedBefore as found:
                first = self.lead_to_first(request, found, form.task_name)
                return self._after(request, first, form.task_name)
        except TaskQueueError as error:
            form.add_error("unique_key" if isinstance(error, DuplicateTask) else None, str(error))
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


def _doc(definition: BaseDefinition[Any, Any]) -> str:
    """Return the docstring of the task's function."""
    return inspect.cleandoc(definition.__doc__ or "")


OPTIONS = labelled_options(Use.USING)


class EnqueueForm(forms.Form):
    """A field for each parameter, then the options; an empty one is as the definition says."""

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
        # A template that came upon it would call it, and so run the body.
        self._definition = definition
        self.task_name = definition.name
        self.parameters = parameters(definition)
        for parameter in self.parameters:
            self.fields[field_name(parameter)] = field_of(parameter)
            if needs_null_box(parameter):
                self.fields[null_name(parameter)] = forms.BooleanField(
                    label=f"{parameter.name} = null", required=False
                )
        shown = definition.options
        self.fields["queue_name"].widget.attrs["placeholder"] = shown.queue_name
        self.fields["priority"].widget.attrs["placeholder"] = str(shown.priority)

    @property
    def argument_fields(self) -> list[Any]:
        """The parameters' fields, in the order of the signature."""
        names = [(field_name(each), null_name(each)) for each in self.parameters]
        return [self[name] for pair in names for name in pair if name in self.fields]

    @property
    def option_fields(self) -> list[Any]:
        """The other fields."""
        return [self[name] for name in (*OPTIONS, "options")]

    @property
    def option_errors(self) -> bool:
        """Whether what is wrong stands among the options."""
        return not self.errors.keys().isdisjoint((*OPTIONS, "options"))

    def clean(self) -> dict[str, Any]:
        """The call and the options, by the definition."""
        given = self.cleaned_data
        self._check_rest()
        if self.errors:
            return given
        chosen = self._chosen(given)
        call = self._call(given)
        if chosen is not None and call is not None:
            given["chosen"], given["call"] = chosen, call
            self._try(None, _encode, chosen, *call)
        return given

    def _check_rest(self) -> None:
        """Refuse a secret among the other keywords, and show it to nobody."""
        for parameter in self.parameters:
            if parameter.place is not inspect.Parameter.VAR_KEYWORD:
                continue
            written = self.cleaned_data.get(field_name(parameter)) or {}
            own = {each.name for each in self.parameters if each is not parameter}
            if twice := sorted(own & written.keys()):
                told = _("%(name)s has a field of its own.") % {"name": twice[0]}
                self.add_error(field_name(parameter), told)
                data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
                data[field_name(parameter)] = ""
                self.data = data

    def _chosen(self, given: dict[str, Any]) -> BaseDefinition[Any, Any] | None:
        """The definition with the options that were given; each error beside its field."""
        own = given_options(given, OPTIONS)
        for name, value in own.items():
            self._try(name, self._definition.using, **{name: value})
        further = self._try("options", options_from_json, given["options"])
        if further is None:
            return None
        for name in own.keys() & further.keys():
            self.add_error("options", _("%(name)s has a field of its own.") % {"name": name})
        if self.errors:
            return None
        found: BaseDefinition[Any, Any] | None
        found = self._try("options", self._definition.using, **{**further, **own})
        return found

    def _call(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
        values: dict[str, Any] = {}
        for each in self.parameters:
            value, raw = given[field_name(each)], self[field_name(each)].data
            if given.get(null_name(each)):
                values[each.name] = None
            elif not is_left_out(each, value, raw):
                values[each.name] = value
        try:
            return call_of(self.parameters, values)
        except ValueError as error:
            told = _("Give this one too: others that stand behind it are given by their place.")
            self.add_error(f"{PREFIX}{error}", told)
            return None

    def _try(self, field: str | None, check: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Return what the check returns; on an error None, with the error at the field."""
        try:
            return check(*args, **named)
        except (ValidationError, TaskQueueError, ValueError, TypeError, OverflowError) as error:
            self.add_error(field, str(error))
        return None


def _encode(chosen: BaseDefinition[Any, Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    """Check the arguments; what a callable unique key raises is told by its class alone."""
    try:
        chosen.encode(args, kwargs)
    except TaskQueueError:
        raise
    except Exception as error:
        # Not its text: it may hold an argument, and that may be a secret.
        told = _("The unique key of %(name)s cannot be made of these arguments: %(error)s.")
        raise ValueError(told % {"name": chosen.name, "error": type(error).__name__}) from None
