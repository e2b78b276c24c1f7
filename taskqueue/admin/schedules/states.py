"""What state a schedule is in, in words, and the filter by it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.badges import WORDS, badge
from taskqueue.engine.schedules.reading import OVERDUE, conditions
from taskqueue.rules import AfterEnd

RESTS = Q(is_enabled=False) | Q(removed_at__isnull=False)
OVER = Q(next_at=None) & ~Q(rule__kind=AfterEnd.kind)
STATES = {
    "active": (WORDS["active"], ~RESTS & ~OVER & Q(paused_at=None, trouble="")),
    "paused": (_("paused"), Q(paused_at__isnull=False)),
    "disabled": (_("disabled"), Q(is_enabled=False)),
    "removed": (_("removed from code"), Q(removed_at__isnull=False)),
    "trouble": (_("has a problem"), ~Q(trouble="")),
    "over": (_("over: no further runs"), ~RESTS & OVER),
    "overdue": (_("overdue: no worker serves it"), ~RESTS & Q(next_at__lt=F("now") - OVERDUE)),
}
"""By its word in the address: what it is called, and the rows that are in it."""


def state_of(schedule: Any) -> SafeString:
    """All that keeps it from running, else that it is active, as badges; `now` is annotated."""
    names = conditions(schedule, schedule.now) or ["active"]
    return format_html_join(" ", "{}", ((_badge(name, schedule),) for name in names))


def _badge(name: str, schedule: Any) -> SafeString:
    if name == "paused" and schedule.paused_by:
        return badge(name, gettext("paused by %(who)s") % {"who": schedule.paused_by})
    if name == "paused" and schedule.paused_itself:
        return badge(name, gettext("paused after failures"))
    return badge(name, STATES[name][0] if name in ("over", "overdue") else None)


class StateFilter(admin.SimpleListFilter):
    """By state; a schedule may be in several."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(word, title) for word, (title, _) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = STATES.get(self.value() or "")
        return queryset if state is None else queryset.filter(state[1])
