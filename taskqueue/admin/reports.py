"""Pages that are no list of rows: read once, shown whole."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import path

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.permissions import VIEW_TASKS


def report(
    model_admin: Any, request: HttpRequest, template: str, title: str, **context: Any
) -> TemplateResponse:
    """A page in the admin's frame."""
    frame = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "here": request.get_full_path(),
        **context,
    }
    return TemplateResponse(request, template, frame)


class ReportAdmin(ReadOnlyAdmin):
    """One address, for those who may view tasks; rows have no pages here.

    A page of a row would show all its columns, sensitive arguments among them.
    """

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_changelist"
        return [path("", self.admin_site.admin_view(self.changelist_view), name=name)]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(VIEW_TASKS))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page, for those who may view it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return self.shown(request)

    def shown(self, request: HttpRequest) -> HttpResponse:
        """What the page says."""
        raise NotImplementedError
