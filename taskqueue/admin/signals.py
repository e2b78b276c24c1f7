"""Streams that tell an open page that it has changed, so that it fetches its fragment at once.

The streams carry no content: pages are rendered and redacted in one place. They are served under
ASGI; elsewhere, and if no stream may be opened, a page polls every few seconds.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from taskqueue.access.users import has_all
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.core.event_kinds import EventKind
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.events.following import follow
from taskqueue.engine.events.reading import Page
from taskqueue.monitoring.read_models.event import needed_for, visible_to
from taskqueue.monitoring.streams import RETRY_AFTER, look_every, stream

READY = "retry: 5000\nevent: ready\ndata: -\n\n"
CHANGED = "event: changed\ndata: -\n\n"
LOOKING = ("GET", "HEAD")
# Events that the dashboard does not receive. There may be thousands a second, and each event that
# somebody wants is a row: an open dashboard must not slow down the workers. It polls for these
# changes every few seconds.
OF_EVERY_TASK = frozenset({
    EventKind.TASK_ENQUEUED, EventKind.TASK_STARTED, EventKind.TASK_PROGRESSED,
    EventKind.TASK_SUCCEEDED, EventKind.WORKFLOW_STARTED, EventKind.WORKFLOW_SUCCEEDED,
})  # fmt: skip


class SignalAdmin(ReadOnlyAdmin):
    """Pages with a stream of signals, for users who may view the page."""

    def events_of(self, object_id: UUID | None) -> EventFilter:
        """Return the events that change what the page shows."""
        raise NotImplementedError

    def stream_url(self, request: HttpRequest, *args: object) -> str:
        """Return the address of the stream of a page; "" if the server has none."""
        if not isinstance(request, ASGIRequest):
            return ""
        return self.links.url(f"{self.opts.model_name}_stream", *args)

    def stream_view(self, request: HttpRequest, object_id: UUID | None = None) -> Any:
        """Send a signal for each change, as server-sent events."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        if not isinstance(request, ASGIRequest):
            return HttpResponse(status=404)
        wanted = visible_to(request.user, self.events_of(object_id))
        if wanted is None:
            raise PermissionDenied
        if request.method == "HEAD":
            return HttpResponse(content_type="text/event-stream")
        needs, is_staff = needed_for(wanted), request.user.is_staff
        answer = stream(
            request,
            request.user,
            follow(wanted, look_every=look_every()),
            said=_signals,
            silent=lambda page: READY,
            may_look=lambda user: user.is_staff >= is_staff and has_all(user, needs),
        )
        if answer is None:
            return HttpResponse(status=503, headers={"Retry-After": str(RETRY_AFTER)})
        return answer


def _signals(page: Page) -> list[str]:
    """Return one signal, however many events there are."""
    return [CHANGED] if page.events else []
