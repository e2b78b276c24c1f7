"""Events over REST: pages that may wait for news, and a stream under ASGI."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.access import has_all, identity_of
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Strict, Text
from taskqueue.api.problems import InvalidQuery, Problem
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits
from taskqueue.conf import get_settings
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.following import follow
from taskqueue.engine.events.reading import MOST, Page, read
from taskqueue.engine.events.subscribing import keep_reading, last_seq
from taskqueue.exceptions import EventsGone, InvalidSubscription
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.event import ShownEvent, shown_events, visible_to

# Seconds: of a stream in all, between two comments while nothing happens, between two looks at what
# its user may see, and for which a client may leave what was sent to it unread.
LONGEST_STREAM, COMMENT, LOOK, UNREAD = 600.0, 15.0, 60.0, 30.0
RETRY_AFTER = 30
KINDS = "Kinds or patterns such as `task.*`, separated by commas."


@dataclass(frozen=True, kw_only=True)
class EventPage:
    """A page of events, the oldest first, and the parameter of the next request."""

    results: list[ShownEvent]
    after: int = about("The `after` of the next request, also while more may follow.")
    has_more: bool = about("Whether there are more already.")


class WhichEvents(Strict):
    """The filter of events."""

    after = Digits(help_text="Only events behind this number; default: from now.")
    kind = Text(required=False, max_length=1000, help_text=KINDS)
    name = Text(required=False, max_length=255, help_text="A name, or a pattern with * and ?.")
    queue = Text(required=False, max_length=255, help_text="A queue, or a pattern with * and ?.")
    task = serializers.UUIDField(required=False)
    workflow = serializers.UUIDField(required=False)


class WhichPage(WhichEvents):
    """The same, with what a page has."""

    limit = Digits(default=100, min_value=1, max_value=MOST)
    wait = Digits(default=0, max_value=LONGEST_WAIT, help_text="Seconds to wait for an event.")


class EventView(ApiView):
    """Events of the kinds that their reader may see."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "events"

    @property
    def wanted(self) -> EventFilter:
        """The filter of the request. Raises 400, and 403 for kinds that are not to be seen."""
        given = self.parameters
        kinds = [kind for kind in given.get("kind", "").split(",") if kind]
        conditions = {
            name: given[name] for name in ("name", "queue", "task", "workflow") if name in given
        }
        try:
            wanted = EventFilter.of(kinds, **conditions)
        except InvalidSubscription as error:
            raise InvalidQuery({"request": [str(error)]}) from None
        visible = visible_to(self.request.user, wanted)
        if visible is None:
            raise Problem(403, "permission_denied", "You lack the permission to see these events.")
        return visible


class EventList(EventView):
    """The feed of events."""

    @endpoint("listEvents", answers={200: EventPage}, query=WhichPage, problems=(410,))
    def get(self, request: Request) -> Response:
        """Events behind a number, the oldest first.

        Events are written only while somebody has subscribed to them: whoever waits has, from the
        first request with `wait` until a minute after the last. Repeat the request with `after` and
        `wait`. Without `after`, the answer says where the feed stands. 410 where events that were
        not read yet are no longer kept; `oldest` says where to read on.
        """
        wanted, limit, connection = self.wanted, self.parameters["limit"], project_connection()
        subscribe = keep_reading if self.parameters["wait"] else _stand
        last = subscribe(connection, wanted)
        after = self.parameters.get("after", last)
        page = waited(
            self,
            lambda: read(project_connection(), wanted, after=after, limit=limit),
            lambda page: bool(page.events),
            self.parameters["wait"],
        )
        return Response(json_form(_shown(page, request.user)))


class EventStream(EventView):
    """The feed as server-sent events."""

    @endpoint(
        "streamEvents",
        answers={(200, "text/event-stream"): str},
        query=WhichEvents,
        problems=(410, 501),
    )
    def get(self, request: Request) -> Any:
        """Events as they come, as server-sent events: `id` is the number, `event` the kind.

        Only under ASGI; else 501: use `events/?wait=20`. `Last-Event-ID` goes on behind that
        number. A stream ends after ten minutes, and clients come back by themselves. 503 with
        Retry-After where too many streams are open.
        """
        if not isinstance(request._request, ASGIRequest):
            detail = "Streams need a server that runs ASGI. Use events/?wait=20 instead."
            raise Problem(501, "no_streams", detail)
        wanted, after = self.wanted, self._after(request)
        if after is not None:
            read(project_connection(), wanted, after=after, limit=1)  # Raises 410.
        release = OPEN.take(request.user)
        if release is None:
            problem = Problem(
                503, "too_many_streams", "Too many streams are open. Try again later."
            )
            problem.wait = RETRY_AFTER
            raise problem
        answer = StreamingHttpResponse(
            _sent(wanted, after, may_go_on=_asker(request), viewer=request.user, release=release),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        # Also where the client has gone before the first part was asked for.
        answer._resource_closers.append(release)  # type: ignore[attr-defined]
        return answer

    def _after(self, request: Request) -> int | None:
        last = request.META.get("HTTP_LAST_EVENT_ID", "")
        if last.isdecimal() and len(last) <= 18:
            return int(last)
        after: int | None = self.parameters.get("after")
        return after


class OpenStreams:
    """The streams that are open in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: Counter[str] = Counter()

    def take(self, user: Any) -> Callable[[], None] | None:
        """Count one more; what ends it, to be called at least once. None: there are too many."""
        who, most = identity_of(user) or "", get_settings().STREAMS
        of_user, in_all = most["user"], most["process"]
        with self._lock:
            is_full = in_all is not None and self._taken.total() >= in_all
            if is_full or (of_user is not None and self._taken[who] >= of_user):
                return None
            self._taken[who] += 1
        left = [who]

        def release() -> None:
            with self._lock:
                self._taken -= Counter(left)  # Forgets who has none any more.
                left.clear()

        return release


OPEN = OpenStreams()


async def _sent(
    wanted: EventFilter,
    after: int | None,
    *,
    may_go_on: Callable[[], bool],
    viewer: Any,
    release: Callable[[], None],
) -> AsyncIterator[bytes]:
    """Yield the parts of a stream. It ends with its time, and with the rights of its user."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    ends_at, look_at = time.monotonic() + LONGEST_STREAM, time.monotonic() + LOOK
    said_at = 0.0
    try:
        async for page in follow(wanted, after=after, look_every=min(COMMENT, LOOK) / 3):
            now = time.monotonic()
            if now >= look_at:
                look_at = now + LOOK
                if not await sync_to_async(may_go_on, thread_sensitive=True)():
                    return
            parts = await sync_to_async(_parts, thread_sensitive=True)(page, viewer)
            if not parts and (not said_at or now - said_at >= COMMENT):
                # The first one says where the feed stands, so that a client that comes back misses
                # nothing.
                parts = [f"id: {page.next_seq}\nretry: 2000\n: is open\n\n"]
            for part in parts:
                said_at = now
                # Whoever does not read what was sent is left, and may come back.
                ends = loop.call_later(UNREAD, task.cancel) if task is not None else None
                yield part.encode()
                if ends is not None:
                    ends.cancel()
            if now >= ends_at:
                return
    except EventsGone as error:
        gone = json.dumps({"detail": str(error), "oldest": error.oldest})
        yield f"event: gone\ndata: {gone}\n\n".encode()
    finally:
        release()


def _parts(page: Page, viewer: Any) -> list[str]:
    return [
        f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(json_form(event))}\n\n"
        for event in shown_events(page.events, viewer)
    ]


def _asker(request: Request) -> Callable[[], bool]:
    """Return what tells whether the user may still look, and has not logged out."""
    user: Any = request.user
    session: Any = getattr(request._request, "session", None)
    key = getattr(session, "session_key", None)

    def may_go_on() -> bool:
        rows = getattr(type(user), "_default_manager", None)
        now = rows.filter(pk=user.pk).first() if rows is not None else user
        if now is None or not now.is_active or not has_all(now, (VIEW_TASKS,)):
            return False
        return key is None or session.exists(key)

    return may_go_on


def _stand(connection: BaseDatabaseWrapper, wanted: EventFilter) -> int:
    """Return where the feed stands, for a reader who does not wait: that is to write nothing."""
    return last_seq(connection)


def _shown(page: Page, viewer: Any) -> EventPage:
    events = shown_events(page.events, viewer)
    return EventPage(results=events, after=page.next_seq, has_more=page.has_more)
