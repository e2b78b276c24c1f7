"""Addresses that do not exist: refused as every other error is, and only to known users."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponsePermanentRedirect
from django.utils.http import escape_leading_slashes
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.api.base import ApiView
from taskqueue.api.problems import Problem


class NotFound(ApiView):
    """404, or a redirect where only the final slash is missing.

    Django itself would redirect each request, also a POST, which then becomes a GET: nothing would
    be enqueued, and the client would see 200.
    """

    needs = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), ())
    schema: Any = None

    def get(self, request: Request) -> Any:
        """Redirect to the address with a final slash: reading is the same by GET."""
        if request.path.endswith("/"):
            return self.post(request)
        address = request._request.get_full_path(force_append_slash=True)
        return HttpResponsePermanentRedirect(escape_leading_slashes(address))

    def post(self, request: Request) -> Response:
        """404, with the address that was meant."""
        path = request.path
        hint = "" if path.endswith("/") else f" Its address ends with a slash: {path}/"
        raise Problem(404, "not_found", f"Nothing exists at {path}.{hint}")

    put = patch = delete = post
