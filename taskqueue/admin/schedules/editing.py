"""The buttons and actions of schedules, and the pages that create and edit them."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, AdminErrorList, AdminForm
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.translation import gettext as _

from taskqueue import schedules
from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.acts import ReasonForm
from taskqueue.admin.filters import row_id
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.deleting import DELETE, ScheduleDeleting
from taskqueue.admin.schedules.form import ScheduleForm, rule_typed
from taskqueue.admin.schedules.initial import MORE_FIELDS, OWN_FIELDS, POLICIES
from taskqueue.admin.schedules.page import times_table
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.schedules.reading import preview_rule
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.exceptions import ChangedMeanwhile, InvalidSchedule, TaskQueueError, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.schedule import MOST_TIMES, visible_arguments_of
from taskqueue.monitoring.reading import now

RULE = ("kind", "tz", "expression", "interval", "first", "last", "every", "days", "at", "start",
        "end")  # fmt: skip
CALL = ("args", "kwargs", *OWN_FIELDS, *MORE_FIELDS, "options")


logger = logging.getLogger("taskqueue.admin")

BUTTONS = {name: SCHEDULE_VERBS[name] for name in ("run_now", "pause", "resume")}


def _action(verb: Verb) -> Any:
    def act(page: ScheduleActs, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        if verb is DELETE and not request.POST.get("post"):
            return page.ask_before_deleting(request, list(chosen))
        for schedule in chosen:
            page.act(request, verb, schedule)
        return None

    act.__name__ = "delete_chosen" if verb is DELETE else verb.name
    permission = "edit" if ENQUEUE in verb.permissions else "pause"
    return admin.action(permissions=[permission], description=verb.label)(act)


class ScheduleActs(ScheduleDeleting):
    """Buttons of the page and actions of the list, for those who may edit schedules."""

    actions: Any = tuple(map(_action, (*BUTTONS.values(), DELETE)))
    action_form = ReasonForm

    def has_pause_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether they may pause and delete: what makes no task."""
        return SCHEDULE_VERBS["pause"].is_for(request.user)

    def has_edit_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether they may also create, edit, resume and run: what makes tasks."""
        return SCHEDULE_VERBS["edit"].is_for(request.user)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Leave out chosen values that are no keys: a database may refuse them."""
        posted = request.POST.copy()
        keys = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, [key for key in keys if row_id(key) is not None])
        request.POST = posted
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """A button of the page."""
        name = request.POST.get("verb", "")
        verb = BUTTONS.get(name)
        if not (verb or SCHEDULE_VERBS["pause"]).is_for(request.user):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            return self.missing(request)
        if verb is not None:
            self.act(request, verb, schedule)
        else:
            refusal = _("There is nothing called “%(verb)s” to do.") % {"verb": name}
            self.message_user(request, refusal, messages.ERROR)
        return self.links.redirect("schedule_change", schedule.pk)

    def act(self, request: HttpRequest, verb: Verb, row: Any, **arguments: Any) -> bool:
        """Its rule may raise anything: the others are still acted on."""
        try:
            return super().act(request, verb, row, **arguments)
        except Exception as error:
            logger.exception("Schedule not acted on verb=%s schedule=%s", verb.name, row.name)
            refusal = _("%(schedule)s: nothing was done for %(error)s. See the log.")
            named = {"schedule": row.name, "error": type(error).__name__}
            self.message_user(request, refusal % named, messages.ERROR)
            return False


class ScheduleEditing(ScheduleActs):
    """Rows are changed by verbs alone: no form saves a model."""

    edit_template = "admin/taskqueue/schedule/edit_form.html"
    preview_template = "admin/taskqueue/schedule/preview.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_edit_permission(request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_edit_permission(request):
            raise PermissionDenied
        key = request.GET.get("copy", "")
        copied = self.get_object(request, key) if row_id(key) is not None else None
        return self._edit(request, None, copied)

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """Return the next times of the rule that is being typed, or what is wrong with it."""
        if not self.has_edit_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        rule, problem = rule_typed(request.GET, request.user)
        times: list[datetime] = []
        if rule is not None:
            try:
                times = preview_rule(rule, count=MOST_TIMES, after=now())
            except InvalidSchedule as error:
                problem = str(error)
        shown = times_table(rule, times) if rule is not None and times else ""
        return render(request, self.preview_template, {"times": shown, "problem": problem})

    def edit_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        if not self.has_edit_permission(request):
            raise PermissionDenied
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            self.message_user(request, _("This schedule no longer exists."), messages.ERROR)
            return self.links.redirect("schedule_changelist")
        if schedule.source == ScheduleSource.CODE:
            refusal = _(
                "%(name)s is declared in code, next to %(task)s, and can only be edited there."
            )
            named = {"name": schedule.name, "task": schedule.task_name}
            self.message_user(request, refusal % named, messages.ERROR)
            return self.links.redirect("schedule_change", schedule.pk)
        return self._edit(request, schedule)

    def _edit(
        self, request: HttpRequest, schedule: Schedule | None, copied: Schedule | None = None
    ) -> HttpResponse:
        posted = request.POST if request.method == "POST" else None
        form = ScheduleForm(posted, schedule=schedule, viewer=request.user, copied=copied)
        if posted is not None and form.is_valid():
            saved = self._save(request, form)
            if saved is not None:
                return self.links.redirect("schedule_change", saved.pk)
        return self._form_page(request, form)

    def _save(self, request: HttpRequest, form: ScheduleForm) -> Schedule | None:
        """Return the saved row; None if it was refused, with the error in the form."""
        given: dict[str, Any] = {
            **form.changes(), "by": request.user, "reason": form.cleaned_data["reason"],
        }  # fmt: skip
        try:
            if form.schedule is None:
                saved = schedules.create(form.cleaned_data["name"], **given)
            else:
                saved = schedules.edit(form.schedule.name, seen=form.is_current, **given)
        except UnknownTask as error:
            form.add_error("task", str(error))
        except ChangedMeanwhile:
            form.add_error(
                None,
                _(
                    "Somebody else has changed this schedule since you opened the form, so nothing "
                    "was saved. Save again to replace their changes with what you entered."
                ),
            )
        except TaskQueueError as error:
            form.add_error("kind" if str(error).startswith("The rule ") else None, str(error))
        else:
            done = _("Created") if form.schedule is None else _("Edited")
            self.note(request, saved, f"{done}.")
            self.message_user(request, f"{done}: {saved.name}", messages.SUCCESS)
            return saved
        return None

    def _form_page(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Show the form in the admin's layout, although it is not a model's form."""
        schedule: Schedule | None = form.schedule
        parts: Any = (
            (None, {"fields": ("task", "enabled") if schedule else ("name", "task", "enabled")}),
            (_("Rule"), {"fields": RULE}),
            (
                _("Arguments and options"),
                {"fields": CALL, "description": _hint(request, schedule)},
            ),
            (_("Policies"), {"fields": POLICIES}),
            (_("Audit"), {"fields": ("reason",)}),
        )
        return report(
            self,
            request,
            self.edit_template,
            _("Edit %(name)s") % {"name": schedule.name} if schedule else _("Create schedule"),
            adminform=AdminForm(form, parts, {}, model_admin=self),
            errors=AdminErrorList(form, []),
            media=self.media + form.media,
            original=schedule,
            add=schedule is None,
            has_view_permission=True,
            zones=sorted(available_timezones()),
        )


def _hint(request: HttpRequest, schedule: Schedule | None) -> str:
    """Explain hidden and redacted arguments, as markup that holds nothing of the schedule."""
    if schedule is None:
        return ""
    shown = visible_arguments_of(schedule, request.user)
    if shown is None:
        return _(
            "The arguments are hidden because this process does not know the task's definition. "
            "Enter them again for the task that you choose."
        )
    if REDACTED not in [*shown.args, *shown.kwargs.values()]:
        return ""
    return _("Values shown as %(mark)s are kept unless you enter new ones.") % {"mark": REDACTED}
