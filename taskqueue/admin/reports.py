"""Pages that are not lists of rows, their refreshed fragments, and their periods."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseNotModified
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.filters import row_id
from taskqueue.engine.connections import database_alias
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.searching.moments import moment


def report(
    model_admin: Any, request: HttpRequest, template: str, title: str, **context: Any
) -> TemplateResponse:
    """Return a page in the admin's frame."""
    request.current_app = model_admin.admin_site.name
    frame = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "here": request.get_full_path(),
        **context,
    }
    return TemplateResponse(request, template, frame)


LOOKING = ("GET", "HEAD")


class ShownWhole(ReadOnlyAdmin):
    """A list that fits on one page, for users who may view it."""

    def check_look(self, request: HttpRequest) -> None:
        """Raise PermissionDenied if the user may not view the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Return the page, for users who may view it."""
        self.check_look(request)
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        return self.shown(request)

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Return the page."""
        raise NotImplementedError


class ReportAdmin(ShownWhole):
    """One page for users who may view tasks; its rows have no pages.

    A page of a row would show all columns, including sensitive arguments.
    """

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_changelist"
        page = path("", self.admin_site.admin_view(self.changelist_view), name=name)
        return self.with_explanations([*self.own_urls(), page])

    @property
    def needed_to_view(self) -> tuple[str, ...]:
        return (VIEW_TASKS,)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(VIEW_TASKS))


class RowReportAdmin(ShownWhole):
    """A list that fits on one page, with a similar page for each row."""

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Return the page of the row with that key; redirect to the list if there is none."""
        self.check_look(request)
        if request.method not in LOOKING:
            raise PermissionDenied
        row = self.row(object_id)
        if row is None:
            return self.links.redirect(f"{self.opts.model_name}_changelist")
        return self.shown_row(request, row)

    def row(self, text: str) -> Any:
        """Return the row with that key; None if there is none."""
        return self.model._default_manager.using(database_alias()).filter(pk=row_id(text)).first()

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Return the page of a row."""
        raise NotImplementedError


HEADER = "taskqueue-refresh"


def live_report(
    model_admin: Any, request: HttpRequest, templates: tuple[str, str], title: str, **context: Any
) -> HttpResponse:
    """Return a page with a part that it refreshes; the second template is that of the part.

    `stream_url` in the context is the address of the stream that signals changes of the part, if
    there is one. A refresh gets only the part, or 304 if the browser already has it. The part must
    not contain a CSRF token, which would differ every time.
    """
    request.current_app = model_admin.admin_site.name
    whole, part = templates
    html = render_to_string(part, context, request)
    etag = f'"{sha256(html.encode()).hexdigest()}"'
    if request.headers.get("X-Requested-With") != HEADER:
        return report(model_admin, request, whole, title, **context, live=html, etag=etag)
    # Compression on the way makes the tag a weak one.
    tags = parse_etags(request.headers.get("If-None-Match", ""))
    is_known = etag in {tag.removeprefix("W/") for tag in tags}
    response = HttpResponseNotModified() if is_known else HttpResponse(html)
    response.headers["ETag"] = etag
    patch_vary_headers(response, ("Cookie", "Accept-Language", "X-Requested-With"))
    return response


SPAN_TITLES = {
    "hour": _("Last hour"), "day": _("Last day"), "week": _("Last week"),
    "month": _("Last 30 days"), "quarter": _("Last 90 days"),
}  # fmt: skip
LONGEST_TIME = 40


def since_of(request: HttpRequest) -> tuple[datetime | None, str]:
    """Return the moment in `?since=`, in the syntax of a search, and its error if it is invalid."""
    text = request.GET.get("since", "").strip()[:LONGEST_TIME]
    if not text:
        return None, ""
    try:
        return moment(text, now=now()).replace(microsecond=0), ""
    except ValueError:
        told = gettext(
            "“%(text)s” is not a time: use 2h, 7d, 14:30, 2026-11-01 or 2026-11-01T14:30."
        )
        return None, told % {"text": text}


def span_of(request: HttpRequest) -> str:
    """Return the period in the address; the last hour by default."""
    named = request.GET.get("span", "")
    return named if named in SPAN_TITLES else "hour"


def span_tabs(span: str, *, since: object = None, **kept: str) -> list[dict[str, Any]]:
    """Return a link for each period; `kept` are the other parameters of the address.

    None of them is current if the page counts from a given moment.
    """
    return [
        {
            "title": title,
            "url": f"?{urlencode({'span': each, **kept})}",
            "is_current": each == span and since is None,
        }
        for each, title in SPAN_TITLES.items()
    ]
