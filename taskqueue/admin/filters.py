"""Filters and searches of lists, which use an index however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import BooleanField, Max, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.columns import label
from taskqueue.core.states import LeaseStatus
from taskqueue.display import WORDS
from taskqueue.engine.connections import database_alias
from taskqueue.engine.wedged import wedged
from taskqueue.models import Lease

MOST = 100
MOST_RUNNING = 10_000
# No index finds the successful attempts of a worker, so this many of all attempts are read.
MOST_LOOKED_AT = 100_000
UNSUCCESSFUL = (LeaseStatus.FAILED, LeaseStatus.LOST, LeaseStatus.STOPPED, LeaseStatus.RETURNED)
# Conditions of partial indexes, written literally because SQLite would not use them otherwise.
IS_RUNNING = "taskqueue_lease.status = 'running'"
IS_UNSUCCESSFUL = "taskqueue_lease.status IN ('failed', 'lost', 'returned', 'stopped')"


def _literal(condition: str) -> Q:
    return Q(RawSQL(condition, (), output_field=BooleanField()))  # noqa: S611  (constants)


class LeaseStatusFilter(admin.SimpleListFilter):
    """Filters running and unsuccessful attempts. Successful ones, the majority, have no index."""

    title = _("status")
    parameter_name = "status__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        statuses = (LeaseStatus.RUNNING, *UNSUCCESSFUL)
        return [(status.value, WORDS[status.value]) for status in statuses]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        status = self.value()
        if status == LeaseStatus.RUNNING:
            running = Lease.objects.using(database_alias()).filter(_literal(IS_RUNNING))
            ids = running.order_by("worker_id").values_list("pk", flat=True)[:MOST_RUNNING]
            return queryset.filter(pk__in=list(ids))
        if status in UNSUCCESSFUL:
            return queryset.filter(_literal(IS_UNSUCCESSFUL), status=status)
        return queryset.none() if status else queryset


class WorkerFilter(admin.SimpleListFilter):
    """Filter the running and recent attempts of one worker, for links from its page."""

    title = _("worker (recent attempts)")
    parameter_name = "worker__name__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        name = request.GET.get(self.parameter_name, "")
        return [(name, name)] if name else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        its = queryset.filter(worker_id=self.value())
        if request.GET.get(LeaseStatusFilter.parameter_name) == LeaseStatus.RUNNING:
            return its  # There are few enough already.
        last = Lease.objects.using(database_alias()).aggregate(last=Max("pk"))["last"] or 0
        return its.filter(pk__gt=last - MOST_LOOKED_AT)


class WedgedFilter(admin.SimpleListFilter):
    """Filter running attempts that seem wedged, through the index of running attempts."""

    title = _("wedged")
    parameter_name = "wedged"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("yes"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "yes":
            return queryset
        return queryset.filter(pk__in=list(wedged().values_list("pk", flat=True)[:MOST]))


class WordedChoices(admin.ChoicesFieldListFilter):
    """A filter by a column with choices: translated labels, with values in the address.

    Models do not translate their choices, because translations would become part of migrations.
    """

    words: ClassVar[dict[str, Any]] = {
        **WORDS,
        "row": _("created at run time"),
        "code": _("declared in code"),
    }

    def __init__(self, field: Any, *args: Any, **named: Any) -> None:
        super().__init__(field, *args, **named)
        self.title = label(field.name)

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            word = choice["display"]
            yield {**choice, "display": self.words.get(str(word), word)}


LONGEST_ID = len(str(2**63))


def row_id(text: str) -> int | None:
    """Return the number of a row; None if no row can have it."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= LONGEST_ID
    return number if is_number and (number := int(text)) < 2**63 else None
