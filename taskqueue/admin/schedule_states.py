"""What state a schedule is in, in words, and the filter by it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from taskqueue.models import Schedule
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
}
"""By its word in the address: what it is called, and the rows that are in it."""


def state_of(schedule: Schedule) -> str:
    """All that keeps it from running, else that it is active."""
    found = []
    if schedule.removed_at is not None:
        found.append("removed from code")
    if not schedule.is_enabled:
        found.append("disabled")
    if schedule.paused_at is not None:
        found.append(f"paused by {schedule.paused_by}" if schedule.paused_by else "paused")
    if schedule.trouble:
        found.append("in trouble")
    if schedule.is_active and is_over(schedule):
        found.append("over")
    return ", ".join(found) or "active"


def is_over(schedule: Schedule) -> bool:
    """Whether its rule has no time to come; one that waits for an end goes on."""
    return schedule.next_at is None and kind_of(schedule) != AfterEnd.kind


def kind_of(schedule: Schedule) -> str:
    """The kind of its rule, also where another version wrote the rule."""
    return str(schedule.rule.get("kind", "")) if isinstance(schedule.rule, dict) else ""


class StateFilter(admin.SimpleListFilter):
    """By state; a schedule may be in several."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, title) for word, (title, _) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = STATES.get(self.value() or "")
        return queryset if state is None else queryset.filter(state[1])
