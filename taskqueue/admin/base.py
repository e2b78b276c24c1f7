"""The base of the admin's pages: read-only lists and pages that are cheap on large tables."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.columns import column
from taskqueue.admin.denied import explained
from taskqueue.admin.links import Links
from taskqueue.display import last_digits
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Task

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Model]
    _List = ChangeList
else:
    _Admin, _List = admin.ModelAdmin, ChangeList


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """A paginator that counts only up to `most`, because an exact count reads the whole table."""

    most = 10_000

    @cached_property
    def count(self) -> int:
        """The number of rows, up to `most`."""
        rows = self.object_list
        return rows.order_by()[: self.most].count() if isinstance(rows, QuerySet) else len(rows)

    @property
    def is_capped(self) -> bool:
        """Whether there may be rows after the last page."""
        return self.count >= self.most


class LeanList(_List):
    """A list in the order of an index, without columns that may be large."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        if not all(map(is_storable, request.GET.dict().values())):
            raise IncorrectLookupParameters
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        model_admin: Any = self.model_admin
        return rows.only(*model_admin.columns)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Return the admin's own order, because `?o=` would sort millions of rows."""
        return list(self.model_admin.get_ordering(request))


class ReadOnlyAdmin(_Admin):
    """Read-only lists and pages, for users who may view the model."""

    actions: Any = None
    # The columns that the list reads.
    columns: tuple[str, ...] = ()
    list_per_page = 50
    list_max_show_all = 0
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    paginator = CappedPaginator
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    sortable_by = ()
    # The lookups that the address of a list may use. Django allows any column by default, and a
    # user who may not view an argument could guess it letter by letter
    # (`?kwargs__password__startswith=a`).
    lookups: tuple[str, ...] = ()

    # Addresses below the list's, with the names of their views: `act` is served by `act_view`.
    routes: tuple[tuple[str, str], ...] = ()

    change_form_template = "admin/taskqueue/row.html"
    # Whether people act on the rows, so that the admin's own history has something to show.
    has_history = True

    class Media:
        css = {
            "all": [
                "taskqueue/look.css", "taskqueue/charts.css", "taskqueue/admin.css",
                "taskqueue/pages.css", "taskqueue/phone.css",
            ]
        }  # fmt: skip
        js = ["taskqueue/keyboard.js", "taskqueue/copy.js"]

    @property
    def links(self) -> Links:
        """Addresses within the admin site of this page."""
        return Links(self.admin_site.name)

    def own_urls(self) -> list[Any]:
        """Return the URL patterns of `routes`."""
        return [
            path(
                route,
                self.admin_site.admin_view(getattr(self, f"{name}_view")),
                name=f"taskqueue_{self.opts.model_name}_{name}",
            )
            for route, name in self.routes
        ]

    @property
    def needed_to_view(self) -> tuple[str, ...]:
        """The permissions that the pages need."""
        return (f"{self.opts.app_label}.view_{self.opts.model_name}",)

    def get_urls(self) -> list[Any]:
        return self.with_explanations([*self.own_urls(), *super().get_urls()])

    def with_explanations(self, patterns: list[Any]) -> list[Any]:
        """Let the views say which permissions a user lacks."""
        for pattern in patterns:
            pattern.callback = explained(self, pattern.callback)
        return patterns

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns; those of the model with their labels."""
        return self.labelled(super().get_list_display(request))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the parts of the page; columns of the model with their labels."""
        return [
            (title, {**options, "fields": self.labelled(options["fields"])})
            for title, options in super().get_fieldsets(request, obj)
        ]

    def labelled(self, names: Iterable[Any]) -> list[Any]:
        """Return the names, with plain columns replaced by functions that show them."""
        columns = {field.name for field in self.opts.local_fields}
        return [
            column(name) if name in columns and not hasattr(self, name) else name for name in names
        ]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list with the rows' name as its title, instead of Django's request to select
        one.
        """
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(database_alias())

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Ignore an empty `?_to_field=`, which Django takes for the name of a field."""
        return super().get_object(request, object_id, from_field or None)

    def heading(self, row: Any) -> str:
        """Return the heading of the page of a row."""
        return str(row)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the row under its own name."""
        context |= {"title": self.heading(context["original"]), "subtitle": None}
        context["has_history"] = self.has_history
        return super().render_change_form(request, context, *args, **kwargs)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        return lookup in self.lookups

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Refuse: rows are found by their keys."""
        return to_field == self.opts.pk.name

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


class OfTaskAdmin(ReadOnlyAdmin):
    """Rows that belong to a task: they link to it, and are found by its id."""

    has_history = False
    search_fields = ("task",)
    search_help_text = _("Search by task id.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        try:
            return queryset.filter(task_id=UUID(search_term.strip())), False
        except ValueError:
            return queryset.none(), False

    @admin.display(description=_("task"))
    def task_link(self, row: Any) -> SafeString:
        return self.links.to_row(Task, row.task_id, row.task_id)

    @admin.display(description=_("task"))
    def short_task_link(self, row: Any) -> SafeString:
        """Return a short link for a list, which needs the width for other columns."""
        return self.links.to_row(Task, row.task_id, last_digits(row.task_id))
