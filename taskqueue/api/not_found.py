"""Addresses that there are none of: told as every other error is, and to nobody unknown."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponsePermanentRedirect
from django.utils.http import escape_leading_slashes
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.api.base import ApiView
from taskqueue.api.problems import Problem

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Nothing(ApiView):
    """404."""

    needs = dict.fromkeys(METHODS, ())
    schema: Any = None

    def get(self, request: Request) -> Response:
        raise Problem(404, "not_found", f"There is nothing at {request.path}.")

    post = put = patch = delete = get


class Slashless(Nothing):
    """An address without its final slash.

    Django would lead each request to the one with it, as a GET: nothing is enqueued, and it is 200.
    """

    def get(self, request: Request) -> Any:
        """Lead there: reading is the same by GET."""
        return HttpResponsePermanentRedirect(escape_leading_slashes(_with_slash(request)))

    def post(self, request: Request) -> Response:
        """404, with the address that was meant."""
        told = f"There is nothing at {request.path}. Its address ends with a slash: {request.path}/"
        raise Problem(404, "not_found", told)

    put = patch = delete = post


def _with_slash(request: Request) -> str:
    return request._request.get_full_path(force_append_slash=True)
