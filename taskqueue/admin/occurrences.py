"""Occurrences: one for each nominal time of a schedule."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import LeanList, ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import row_id
from taskqueue.admin.links import kept_runs
from taskqueue.admin.schedules.page import (
    OCCURRENCE_COLUMNS,
    shown_requester,
    shown_status,
    shown_times,
)
from taskqueue.display import EMPTY, WORDS, badge, last_digits, local_time
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.schedule import OPEN, OccurrenceStatus
from taskqueue.reason_words import reason_words

OF_SCHEDULE = "schedule__id__exact"
# Filters by a final status read this many of the newest rows, without an index.
MOST = 10_000


class NewestStatusFilter(admin.SimpleListFilter):
    """Filters by status: open occurrences have an index; for others, the newest rows are read."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(status.value, WORDS[status.value]) for status in OccurrenceStatus]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        status = self.value()
        if status not in set(OccurrenceStatus):
            return queryset
        if status in OPEN:
            return queryset.filter(status__in=OPEN).filter(status=status)
        return newest(queryset, request).filter(status=status)


def newest(queryset: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """Return the newest rows by key, of the schedule in the address if there is one."""
    rows, key = queryset.order_by("-id"), "id"
    of_schedule = row_id(request.GET.get(OF_SCHEDULE, ""))
    if of_schedule is not None:
        rows, key = queryset.filter(schedule_id=of_schedule).order_by("-nominal_at"), "nominal_at"
    first = rows.values_list(key, flat=True)[MOST : MOST + 1].first()
    return queryset if first is None else queryset.filter(**{f"{key}__gt": first})


class OccurrenceList(LeanList):
    """A page of occurrences that knows which of their tasks and workflows are pruned."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        page: Any = list(self.result_list)
        kept = kept_runs(page)
        for row in page:
            row.kept = kept
        self.result_list = page


class OccurrenceAdmin(ReadOnlyAdmin):
    """The list has one occurrence in each row."""

    has_history = False
    columns = (*OCCURRENCE_COLUMNS, "schedule__name")
    list_display = ("times", "schedule_link", "shown_status", "by_hand", "why", "short_run_link")
    list_filter = (NewestStatusFilter,)
    list_select_related = ("schedule",)
    lookups = (OF_SCHEDULE, "status")
    fields = (
        "id", "schedule_link", "nominal_at", "nominal_until", "count", "own_status",
        "why", "run_link", "status_of_task", "by_hand",
        "created_at", "enqueued_at", "finished_at",
    )  # fmt: skip

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LeanList]:
        return OccurrenceList

    def heading(self, row: Occurrence) -> str:
        return f"{row.schedule.name}, {local_time(row.nominal_at):%Y-%m-%d %H:%M:%S}"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Sort the occurrences of one schedule by time, as its index does."""
        return ("-nominal_at",) if OF_SCHEDULE in request.GET else ("-id",)

    times = cell(_("nominal time"), shown_times)

    @admin.display(description=_("schedule"))
    def schedule_link(self, row: Occurrence) -> SafeString:
        return self.links.to_row(Schedule, row.schedule_id, row.schedule.name)

    shown_status = cell(_("status"), shown_status)
    own_status = cell(_("status"), badge, "status")
    status_of_task = cell(_("status of task or workflow"), badge, "task_status")
    why = cell(_("reason"), reason_words, "reason")
    by_hand = cell(_("requested by"), lambda row: shown_requester(row) or EMPTY)

    @admin.display(description=_("task or workflow"))
    def run_link(self, row: Any) -> SafeString:
        kept = getattr(row, "kept", None)
        if kept is None:
            kept = kept_runs([row])
        return self.links.to_run(row.task_id, row.workflow_id, kept)

    @admin.display(description=_("task or workflow"))
    def short_run_link(self, row: Any) -> SafeString:
        """Return a short link for the list, whose rows would take three lines."""
        return self.links.to_run(row.task_id, row.workflow_id, row.kept, last_digits)
