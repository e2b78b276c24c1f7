"""The part of a page that is fetched again and again: answered in full only where it differs.

What the browser does with it stands at the top of static/taskqueue/refresh.js.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.utils.safestring import SafeString

HEADER = "taskqueue-refresh"


@dataclass(frozen=True)
class Fragment:
    """Rendered once, for the page and for what is fetched after it alike."""

    html: SafeString
    etag: str
    """A strong hash of the text, in quotes."""


def fragment(request: HttpRequest, template: str, context: dict[str, Any]) -> Fragment:
    """The template rendered for who asks. It must hold no token: that differs every time."""
    html = render_to_string(template, context, request)
    return Fragment(html, f'"{sha256(html.encode()).hexdigest()}"')


def is_refresh(request: HttpRequest) -> bool:
    """Whether only the fragment is asked for."""
    return request.headers.get("X-Requested-With") == HEADER


def answer(request: HttpRequest, found: Fragment) -> HttpResponse:
    """The fragment, or that it is what the browser has."""
    known = {
        tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))
    }
    # Whoever compresses answers on the way makes the tag a weak one.
    is_known = found.etag in known
    response = HttpResponseNotModified() if is_known else HttpResponse(found.html)
    response.headers["ETag"] = found.etag
    patch_vary_headers(response, ("Cookie", "Accept-Language", "X-Requested-With"))
    return response
