"""Addresses that there are none of: told as every other error is, and to nobody unknown."""

from __future__ import annotations

from typing import Any

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
