"""The page that says which permissions a user lacks, instead of a bare 403."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import connections
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.lacking import names_of_missing


class Denied(PermissionDenied):
    """Raised if a user lacks some of these permissions; if none are given, those of the page."""

    def __init__(self, *permissions: str) -> None:
        super().__init__()
        self.permissions = permissions


def explained(model_admin: Any, view: Callable[..., Any]) -> Callable[..., Any]:
    """Return the view with a page of the admin for users who lack permissions."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return view(request, *args, **kwargs)
        except PermissionDenied as error:
            page = _page(model_admin, request, error)
            # The page is rendered after the transaction, which allows no query from here on.
            _roll_back()
            return page

    return shown


def _roll_back() -> None:
    """Undo what the request wrote, as Django does for an exception under `ATOMIC_REQUESTS`."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["ATOMIC_REQUESTS"] and connection.in_atomic_block:
            connection.set_rollback(True)


def _page(model_admin: Any, request: HttpRequest, error: PermissionDenied) -> TemplateResponse:
    needed = getattr(error, "permissions", ()) or model_admin.needed_to_view
    # The project's own refusals say why; more permissions would not help.
    names = [] if str(error) else names_of_missing(request.user, dict.fromkeys(needed))
    told = ngettext(
        "You need the permission %(names)s.", "You need these permissions: %(names)s.", len(names)
    )
    otherwise = str(error) or _("You may not do this.")
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "title": _("Permission denied"),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "told": told % {"names": ", ".join(names)} if names else otherwise,
        "may_ask": bool(names),
    }
    return TemplateResponse(request, "admin/taskqueue/denied.html", context, status=403)
