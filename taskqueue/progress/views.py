"""The view of progress: JSON, an HTML fragment, or server-sent events, as the client accepts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from taskqueue.progress import streams
from taskqueue.progress.looking import Look, busy, refusal
from taskqueue.progress.looking import look as look_at
from taskqueue.progress.rates import LookRate
from taskqueue.progress.tokens import Claims, Expired, Unknown, read

JSON, HTML, EVENTS = "application/json", "text/html", "text/event-stream"
TEMPLATE = "taskqueue/progress/progress.html"
# Seconds between two looks by htmx.
FIRST_DELAY, LONGEST_DELAY = 1, 10


def _outside_of_transactions(view: Any) -> Any:
    """Opt out of ATOMIC_REQUESTS, because a look is one statement."""
    for alias in connections:
        view = non_atomic_requests(using=alias)(view)
    return view


@_outside_of_transactions
@require_safe
def look(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show the progress to those who may see it, and nothing more."""
    form = _form_of(request)
    answer = _answer(request, token, form)
    answer["Cache-Control"] = "private, no-store"
    answer["X-Robots-Tag"] = "noindex"
    patch_vary_headers(answer, ["Accept", "Accept-Language", "Cookie", "HX-Request"])
    return answer


def _answer(request: HttpRequest, token: str, form: str) -> HttpResponseBase:
    if not LookRate().may(request):
        return _told(busy(), form, 429, **{"Retry-After": "1"})
    try:
        claims = read(token)
        if not claims.is_for(getattr(request, "user", None)):
            raise Unknown
    except Expired as error:
        return _told(refusal(error), form, 410)
    except Unknown as error:
        return _told(refusal(error), form, 404)
    if form == EVENTS:
        return _stream(request, claims)
    seen = look_at(claims)
    etag = f'"{hashlib.sha256(f"{form}{seen.as_json()}".encode()).hexdigest()[:32]}"'
    if form == JSON and etag in request.headers.get("If-None-Match", ""):
        return HttpResponse(status=304, headers={"ETag": etag})
    if form == JSON:
        return _told(seen, form, 200, ETag=etag)
    return _fragment(request, token, seen)


def _form_of(request: HttpRequest) -> str:
    """Return the format that the client wants: a fragment for htmx, JSON by default."""
    if request.headers.get("HX-Request") == "true":
        return HTML
    if EVENTS in request.headers.get("Accept", ""):
        return EVENTS
    return request.get_preferred_type([JSON, HTML]) or JSON


def _told(seen: Look, form: str, status: int, **headers: str) -> HttpResponse:
    if form == HTML:
        text = render_to_string(TEMPLATE, {"shown": seen, "url": ""})
        return HttpResponse(text, status=status, headers=headers)
    body = json.dumps(seen.as_json())
    return HttpResponse(body, content_type=JSON, status=status, headers=headers)


def _fragment(request: HttpRequest, token: str, seen: Look) -> HttpResponse:
    is_htmx = request.headers.get("HX-Request") == "true"
    context = fragment_context(request.path, seen, is_htmx=is_htmx, before=_delay(request))
    answer = HttpResponse(render_to_string(TEMPLATE, context))
    if is_htmx and seen.redirect:
        answer["HX-Redirect"] = seen.redirect
    return answer


def _delay(request: HttpRequest) -> int:
    text = request.GET.get("after", "")
    return int(text) if text.isdecimal() and len(text) < 4 else FIRST_DELAY


def fragment_context(url: str, seen: Look, *, is_htmx: bool, before: int = 0) -> dict[str, Any]:
    """Return the context of the fragment; htmx waits longer from look to look."""
    delay = max(FIRST_DELAY, min(LONGEST_DELAY, round(before * 1.5)))
    return {"shown": seen, "url": url, "htmx": is_htmx, "delay": delay}


def _stream(request: HttpRequest, claims: Claims) -> HttpResponseBase:
    """Stream events under ASGI; under WSGI each client would hold a thread of the server."""
    if not isinstance(request, ASGIRequest):
        return HttpResponse("Server-sent events need ASGI. Ask for JSON again.", status=501)
    if streams.are_full():
        text = "Too many streams are open."
        return HttpResponse(text, status=503, headers={"Retry-After": "10"})
    answer = StreamingHttpResponse(
        streams.events(claims, language=get_language()), content_type=EVENTS
    )
    answer["X-Accel-Buffering"] = "no"
    return answer
