"""What state a schedule is in, in words, and the filter by it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest

from taskqueue.engine.schedules.reading import OVERDUE, conditions
from taskqueue.rules import AfterEnd

RESTS = Q(is_enabled=False) | Q(removed_at__isnull=False)
OVER = Q(next_at=None) & ~Q(rule__kind=AfterEnd.kind)
STATES = {
    "active": ("active", ~RESTS & ~OVER & Q(paused_at=None, trouble="")),
    "paused": ("paused", Q(paused_at__isnull=False)),
    "disabled": ("disabled", Q(is_enabled=False)),
    "removed": ("removed from code", Q(removed_at__isnull=False)),
    "trouble": ("in trouble", ~Q(trouble="")),
    "over": ("over: no time to come", ~RESTS & OVER),
    "overdue": ("overdue: no worker serves it", ~RESTS & Q(next_at__lt=F("now") - OVERDUE)),
}
"""By its word in the address: what it is called, and the rows that are in it."""
WORDS = {
    "removed": "removed from code",
    "trouble": "in trouble",
    "overdue": "overdue: no worker serves it",
}


def state_of(schedule: Any) -> str:
    """All that keeps it from running, else that it is active; `now` is annotated."""
    found = [
        f"paused by {schedule.paused_by}" if name == "paused" and schedule.paused_by
        else WORDS.get(name, name)
        for name in conditions(schedule, schedule.now)
    ]  # fmt: skip
    return ", ".join(found) or "active"


class StateFilter(admin.SimpleListFilter):
    """By state; a schedule may be in several."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, title) for word, (title, _) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = STATES.get(self.value() or "")
        return queryset if state is None else queryset.filter(state[1])
