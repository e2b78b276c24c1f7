"""Schedules: the list, and the page of one with its next times and latest occurrences."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.columns import cell
from taskqueue.admin.filters import WordedChoices
from taskqueue.admin.links import Ran, kept_runs
from taskqueue.admin.schedules.deleting import is_deletable
from taskqueue.admin.schedules.documents import ScheduleDocuments
from taskqueue.admin.schedules.page import (
    StateFilter,
    newest_occurrences,
    next_times,
    shown_arguments,
    shown_source,
    state_of,
)
from taskqueue.admin.schedules.rule_words import MISSED_WORDS, OVERLAP_WORDS, rule_words
from taskqueue.admin.subjects import subject_link
from taskqueue.core.states import TaskStatus
from taskqueue.display import EMPTY, as_json, badge, breakable, moment, preformatted
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.schedules.reading import due_at
from taskqueue.models import Schedule
from taskqueue.models.parts import DatabaseClock
from taskqueue.models.schedule import ScheduleSource
from taskqueue.reason_words import reason_words


class ScheduleAdmin(ScheduleDocuments):
    """Pages show schedules; buttons, actions and the form call the verbs."""

    change_form_template = "admin/taskqueue/schedule/change_form.html"
    columns = (
        "name", "task_name", "is_workflow", "rule", "source", "is_enabled", "removed_at",
        "paused_at", "paused_by", "pause_after_failures", "failures_in_row", "trouble", "next_at",
        "last_nominal_at", "last_status", "max_runs", "run_count",
    )  # fmt: skip
    list_display = (
        "name", "state", "next_time", "last_run", "rule_and_task", "source_word",
    )  # fmt: skip
    list_filter = (StateFilter, ("source", WordedChoices))
    lookups = ("source__exact", "state")
    routes = (
        ("preview/", "preview"),
        ("export/", "export"),
        ("import/", "import"),
        ("<int:object_id>/edit/", "edit"),
        ("<int:object_id>/act/", "act"),
        ("<int:object_id>/run/", "run"),
    )
    ordering: ClassVar[tuple[str, ...]] = ("name",)
    search_fields = ("name",)
    search_help_text = _(
        "Search by the start of a schedule's name, or by the full name of a task or workflow."
    )

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True for everybody who may act on schedules."""
        return super().has_view_permission(request, obj) or self.has_pause_permission(request)

    def get_queryset(self, request: HttpRequest) -> Any:
        may_edit = Value(self.has_edit_permission(request))
        return super().get_queryset(request).annotate(now=DatabaseClock(), may_edit=may_edit)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Compare the start of the name, because databases differ in how LIKE compares."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if not is_storable(term):
            return queryset.none(), False
        begun = queryset.alias(beginning=Left("name", len(term)))
        return begun.filter(Q(beginning=term) | Q(task_name=term)), False

    def get_object(self, request: HttpRequest, *which: Any) -> Any:
        """Return the row, which stores who views it."""
        schedule = super().get_object(request, *which)
        if schedule is not None:
            schedule.viewer = request.user
        return schedule

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        trouble = ("shown_trouble",) if obj.trouble else ()
        paused = PAUSE if obj.paused_at is not None else ()
        target = "workflow_link" if obj.is_workflow else "task_link"
        about = ("state", *trouble, *paused, target, *ABOUT)
        return (
            (None, {"fields": self.labelled(about)}),
            (_("Next times"), {"fields": ("next_times",)}),
            (_("Last run"), {"fields": LAST}),
            (_("Arguments and options"), {"fields": ("arguments", "shown_options")}),
            (_("Policies"), {"fields": self.labelled(POLICIES)}),
            (_("Times"), {"fields": self.labelled(TIMES)}),
        )

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        schedule = context["original"]
        sees_runs = request.user.has_perm("taskqueue.view_occurrence")
        context |= {
            "occurrences": newest_occurrences(schedule, self.links) if sees_runs else None,
            "may_pause": self.has_pause_permission(request),
            "may_edit": self.has_edit_permission(request),
            "is_declared": schedule.source == ScheduleSource.CODE,
            "is_deletable": is_deletable(schedule),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    arguments = cell(_("arguments"), shown_arguments)

    @admin.display(description=_("task name"))
    def task_link(self, schedule: Schedule) -> SafeString | str:
        return subject_link(self.links, "definition", schedule.task_name)

    @admin.display(description=_("workflow"))
    def workflow_link(self, schedule: Schedule) -> SafeString | str:
        return subject_link(self.links, "workflow", schedule.task_name)

    rule_text = cell(_("rule"), rule_words)

    @admin.display(description=_("rule"))
    def rule_and_task(self, schedule: Any) -> SafeString:
        """Show its rule and its task, with a link to the form for users who may edit it."""
        is_edited = schedule.may_edit and schedule.source != ScheduleSource.CODE
        return format_html(
            '{}{} <span class="taskqueue-quiet">{}</span>',
            self._edit_link(schedule) if is_edited else "",
            rule_words(schedule),
            breakable(schedule.task_name),
        )

    def _edit_link(self, schedule: Schedule) -> SafeString:
        url = self.links.url("schedule_edit", schedule.pk)
        called = gettext("Edit %(name)s") % {"name": schedule.name}
        words = '<a class="taskqueue-edit" href="{}" aria-label="{}">{}</a> '
        return format_html(words, url, called, gettext("Edit"))

    state = cell(_("state"), state_of)
    next_time = cell(_("next"), lambda schedule: moment(due_at(schedule)))

    @admin.display(description=_("Last run"))
    def last_run(self, schedule: Schedule) -> SafeString:
        """Show when the last run started, and the outcome of the last run that finished."""
        if not schedule.last_status:
            return moment(schedule.last_nominal_at)
        return format_html("{} {}", moment(schedule.last_nominal_at), badge(schedule.last_status))

    next_times = cell(_("next times"), next_times)
    why_paused = cell(_("pause reason"), reason_words, "pause_reason")
    missed_word = cell(_("missed"), lambda policy: MISSED_WORDS.get(policy, policy), "missed")
    overlap_word = cell(_("overlap"), lambda policy: OVERLAP_WORDS.get(policy, policy), "overlap")
    shown_trouble = cell(_("problem"), lambda text: preformatted(reason_words(text)), "trouble")

    @admin.display(description=_("source"), ordering="source")
    def source_word(self, schedule: Schedule) -> Any:
        return WordedChoices.words.get(schedule.source, schedule.source)

    where = cell(_("source"), shown_source)
    shown_options = cell(_("options"), as_json, "options")
    last_nominal = cell(_("last nominal time"), moment, "last_nominal_at")

    @admin.display(description=_("Last run"))
    def last_run_link(self, schedule: Schedule) -> SafeString:
        run = Ran(schedule.last_task_id, schedule.last_workflow_id)
        return self.links.to_run(run.task_id, run.workflow_id, kept_runs([run]))

    last_outcome = cell(_("last outcome"), badge, "last_status")
    last_finished = cell(_("last finished"), moment, "last_finished_at")

    @admin.display(description=_("return value"))
    def last_result(self, schedule: Schedule) -> SafeString:
        is_success = schedule.last_status == TaskStatus.SUCCEEDED
        return as_json(schedule.last_return_value) if is_success else EMPTY

    shown_error = cell(_("error"), preformatted, "last_error")


ABOUT = ("rule_text", "where")
PAUSE = ("paused_at", "paused_by", "why_paused")
LAST = (
    "last_nominal", "last_run_link", "last_outcome", "last_finished", "last_result",
    "shown_error",
)  # fmt: skip
POLICIES = (
    "missed_word", "missed_window", "overlap_word", "pause_after_failures", "failures_in_row",
    "jitter", "max_runs", "run_count", "is_enabled",
)  # fmt: skip
TIMES = ("created_at", "changed_at", "served_until", "removed_at")
