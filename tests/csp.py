"""A strict Content-Security-Policy on every answer of the tests, as careful projects send it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)


class StrictPolicy:
    """Middleware that lets a browser refuse what stands inline or comes from elsewhere."""

    header = "Content-Security-Policy"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers[self.header] = POLICY
        return response
