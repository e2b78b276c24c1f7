"""Parts of a schedule's page: its state, next times, latest occurrences and links."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from taskqueue.access.permissions import VIEW_ARGUMENTS
from taskqueue.admin.links import Links, kept_runs
from taskqueue.admin.schedules.rules import zone_of
from taskqueue.display import EMPTY, WORDS, as_json, badge, in_zone, last_digits, moment
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.editing import target_of
from taskqueue.engine.schedules.reading import OVERDUE, conditions, rule_of
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.schedule import (
    MOST_TIMES,
    times_to_come,
    visible_arguments_of,
)
from taskqueue.reason_words import reason_words
from taskqueue.rules import AfterEnd, Rule

MOST_OCCURRENCES = 20
OCCURRENCE_COLUMNS = (
    "schedule_id", "nominal_at", "nominal_until", "count", "status", "reason", "task_id",
    "workflow_id", "task_status", "requested_by", "finished_at",
)  # fmt: skip


def newest_occurrences(schedule: Schedule, links: Links) -> list[dict[str, Any]]:
    """Return the newest occurrences as the page shows them."""
    rows = Occurrence.objects.using(database_alias()).filter(schedule_id=schedule.pk)
    newest = list(rows.only(*OCCURRENCE_COLUMNS).order_by("-nominal_at")[:MOST_OCCURRENCES])
    kept = kept_runs(newest)
    return [
        {
            "times": shown_times(row),
            "status": shown_status(row),
            "by": shown_requester(row),
            "reason": reason_words(row.reason),
            "run": links.to_run(row.task_id, row.workflow_id, kept, last_digits),
        }
        for row in newest
    ]


def shown_times(row: Occurrence) -> SafeString:
    """Show the nominal time; for a row with many times, the first, the last and the count."""
    if row.count <= 1 or row.nominal_until is None:
        return moment(row.nominal_at)
    words = ngettext("{} to {} ({} time)", "{} to {} ({} times)", row.count)
    return format_html(words, moment(row.nominal_at), moment(row.nominal_until), row.count)


def shown_status(row: Occurrence) -> SafeString:
    """Show the status of the task or workflow, or of the occurrence if it has none."""
    return badge(row.task_status or row.status)


def shown_requester(row: Occurrence) -> str:
    """Return who requested the run; empty for a run by the rule."""
    return "" if row.requested_by is None else row.requested_by or _("somebody")


def next_times(schedule: Any) -> SafeString:
    """Show the next times in UTC and in the time zone of the rule."""
    if schedule.paused_at is not None:
        return format_html("{}", _("None until the schedule is resumed."))
    times = times_to_come(schedule, schedule.now, count=MOST_TIMES)
    rule = rule_of(schedule)
    return EMPTY if rule is None or not times else times_table(rule, times)


def times_table(rule: Rule, times: list[datetime]) -> SafeString:
    """Show times in UTC and in the time zone of the rule."""
    zones = list(dict.fromkeys(("UTC", zone_of(rule))))
    lines = [[_in(ZoneInfo(zone), at) for zone in zones] for at in times]
    return render_to_string("admin/taskqueue/schedule/times.html", {"zones": zones, "lines": lines})


def _in(zone: ZoneInfo, at: datetime) -> str:
    there = in_zone(at, zone)
    return f"{WEEKDAYS_ABBR[there.weekday()]} {there:%Y-%m-%d %H:%M:%S %z}"


def shown_arguments(schedule: Any) -> SafeString:
    """Show the arguments that the viewer may see, or explain why they are hidden."""
    shown = visible_arguments_of(schedule, schedule.viewer)
    if shown is not None:
        return as_json({"args": shown.args, "kwargs": shown.kwargs})
    hidden = _(
        "Hidden: this process does not know the definition, so it cannot tell which arguments are "
        "sensitive. To view them, you need the permission %(permission)s."
    )
    return format_html("{}", hidden % {"permission": VIEW_ARGUMENTS})


def shown_source(schedule: Schedule) -> str:
    """Return where the schedule can be edited."""
    if schedule.source != ScheduleSource.CODE:
        return _("created at run time, edited here")
    target = target_of(schedule)
    if target is None:
        unknown = _("declared next to %(task)s, which this process does not know")
        return unknown % {"task": schedule.task_name}
    known = _("declared next to %(task)s in the module %(module)s")
    return known % {"task": target.name, "module": target.body.__module__}


RESTS = Q(is_enabled=False) | Q(removed_at__isnull=False)
EXHAUSTED = Q(max_runs__isnull=False, run_count__gte=F("max_runs"))
OVER = Q(next_at=None) & (~Q(rule__kind=AfterEnd.kind) | EXHAUSTED)
# By the word in the address: the label, and the condition for the rows.
STATES = {
    "active": (WORDS["active"], ~RESTS & ~OVER & Q(paused_at=None, trouble="")),
    "paused": (gettext_lazy("paused"), Q(paused_at__isnull=False)),
    "disabled": (gettext_lazy("disabled"), Q(is_enabled=False)),
    "removed": (gettext_lazy("removed from code"), Q(removed_at__isnull=False)),
    "trouble": (gettext_lazy("has a problem"), ~Q(trouble="")),
    "over": (gettext_lazy("over: no further runs"), ~RESTS & OVER),
    "overdue": (
        gettext_lazy("overdue: no worker serves it"),
        ~RESTS & Q(paused_at=None, next_at__lt=F("now") - OVERDUE),
    ),
}


def state_of(schedule: Any) -> SafeString:
    """Return badges for everything that keeps the schedule from running, or one for active."""
    names = conditions(schedule, schedule.now) or ["active"]
    return format_html_join(" ", "{}", ((_badge(name, schedule),) for name in names))


def _badge(name: str, schedule: Any) -> SafeString:
    if name == "paused" and schedule.paused_by:
        return badge(name, _("paused by %(who)s") % {"who": schedule.paused_by})
    if name == "paused" and schedule.paused_itself:
        return badge(name, _("paused after failures"))
    return badge(name, STATES[name][0] if name in ("over", "overdue") else None)


class StateFilter(admin.SimpleListFilter):
    """Filter by state; a schedule may have several."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(word, title) for word, (title, _condition) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = STATES.get(self.value() or "")
        return queryset if state is None else queryset.filter(state[1])
