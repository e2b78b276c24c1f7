"""Events over REST: pages that may wait for news, and a stream under ASGI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_LOGS, VIEW_TASKS
from taskqueue.access.users import has_all
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Strict, Text
from taskqueue.api.problems import InvalidQuery, Problem, forbidden
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.engine.events.following import follow
from taskqueue.engine.events.reading import MOST, Page, read
from taskqueue.engine.events.subscribing import READING_SECONDS, keep_reading, last_seq
from taskqueue.exceptions import InvalidSubscription, TooManyReaders
from taskqueue.monitoring.following import LinePage, follow_lines
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.event import (
    ShownEvent,
    needed_for,
    shown_events,
    visible_to,
)
from taskqueue.monitoring.streams import RETRY_AFTER, look_every, stream

KINDS = "Kinds or patterns such as `task.*`, separated by commas."


@dataclass(frozen=True, kw_only=True)
class EventPage:
    """A page of events, the oldest first, and the parameter of the next request."""

    results: list[ShownEvent]
    after: int = about("The `after` of the next request, also while more may follow.")
    has_more: bool = about("Whether there are more already.")


class WhichEvents(Strict):
    """The filter of events."""

    after = Digits(help_text="Only events after this number; default: from now.")
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
        conditions: dict[str, Any] = {
            name: given[name] for name in ("name", "queue", "task", "workflow") if name in given
        }
        try:
            wanted = EventFilter.of(kinds, **conditions)
        except InvalidSubscription as error:
            raise InvalidQuery({_mistaken(conditions): [str(error)]}) from None
        visible = visible_to(self.request.user, wanted)
        if visible is None:
            raise forbidden(self.request.user, needed_for(wanted))
        return visible


class EventList(EventView):
    """The feed of events."""

    @endpoint("listEvents", answers={200: EventPage}, query=WhichPage, problems=(410,))
    def get(self, request: Request) -> Response:
        """Events behind a number, the oldest first.

        Events are written only while somebody has subscribed to them: whoever waits has, from the
        first request with `wait` until a minute after the last. Repeat the request with `after` and
        `wait`. Without `after`, the answer says where the feed stands. 503 with Retry-After where
        too many readers with different filters wait. 410 where events that were
        not read yet are no longer kept: read on with `after` one less than `oldest`.
        """
        wanted, limit, connection = self.wanted, self.parameters["limit"], project_connection()
        subscribe = _subscribe if self.parameters["wait"] else _stand
        last = subscribe(connection, wanted)
        after = self.parameters.get("after", last)
        page = waited(
            self,
            lambda: read(project_connection(), wanted, after=after, limit=limit),
            lambda page: bool(page.events),
            self.parameters["wait"],
        )
        return Response(json_form(_shown(page, request.user)))


class WhichStream(WhichEvents):
    """The same, or the log lines of one task."""

    logs = Digits(
        default=0,
        max_value=1,
        help_text="1: the log lines of `task` instead; `after` is the id of a line.",
    )


class EventStream(EventView):
    """The feed, or the log lines of a task, as server-sent events."""

    @endpoint(
        "streamEvents",
        answers={(200, "text/event-stream"): str},
        query=WhichStream,
        problems=(404, 410, 501),
    )
    def get(self, request: Request) -> Any:
        """Events as they come, as server-sent events: `id` is the number, `event` the kind.

        Only under ASGI; else 501: use `events/?wait=20`. `Last-Event-ID` goes on behind that
        number. A stream ends after ten minutes, and clients come back by themselves. 503 with
        Retry-After where too many streams are open.

        With `task` and `logs=1` the log lines of that task, from its first one: `id` is the line's,
        `event` is `line`, and `end` after the last line of a task that has finished. That takes
        `view_tasklog`.
        """
        if not isinstance(request._request, ASGIRequest):
            detail = "Streams need a server that runs ASGI. Use events/?wait=20 instead."
            raise Problem(501, "no_streams", detail)
        answer = self._lines() if self.parameters["logs"] else self._events()
        if answer is None:
            problem = Problem(
                503, "too_many_streams", "Too many streams are open. Try again later."
            )
            problem.wait = RETRY_AFTER
            raise problem
        return answer

    def _events(self) -> StreamingHttpResponse | None:
        wanted, after, viewer = self.wanted, self._after(), self.request.user
        needs = (VIEW_TASKS, *needed_for(wanted))
        if after is not None:
            read(project_connection(), wanted, after=after, limit=1)  # Raises 410.
        _subscribe(project_connection(), wanted)  # Raises 503.
        return stream(
            self.request._request,
            viewer,
            follow(wanted, after=after, look_every=look_every()),
            said=lambda page: [
                f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(json_form(event))}\n\n"
                for event in shown_events(page.events, viewer)
            ],
            # It says where the feed stands, so that a client that comes back misses nothing.
            silent=lambda page: f"id: {page.next_seq}\nretry: 2000\n: is open\n\n",
            may_look=lambda user: has_all(user, needs),
        )

    def _lines(self) -> StreamingHttpResponse | None:
        task_id = self.parameters.get("task")
        if task_id is None:
            raise InvalidQuery({"task": ["Name the task whose log lines you want."]})
        others = {"kind", "name", "queue", "workflow"} & self.parameters.keys()
        if others:
            raise InvalidQuery({name: ["Log lines have none."] for name in sorted(others)})
        if not self.request.user.has_perm(VIEW_LOGS):
            raise forbidden(self.request.user, (VIEW_LOGS,))
        status_of(project_connection(), task_id)  # Raises 404.
        return stream(
            self.request._request,
            self.request.user,
            follow_lines(task_id, after=self._after() or 0),
            said=_line_parts,
            silent=lambda page: f"id: {page.after}\nretry: 2000\n: is open\n\n",
            may_look=lambda user: has_all(user, (VIEW_TASKS, VIEW_LOGS)),
        )

    def _after(self) -> int | None:
        last = self.request.META.get("HTTP_LAST_EVENT_ID", "")
        if last.isdecimal() and len(last) <= 18:
            return int(last)
        after: int | None = self.parameters.get("after")
        return after


def _line_parts(page: LinePage) -> list[str]:
    parts = [
        f"id: {line.id}\nevent: line\ndata: {json.dumps(json_form(line))}\n\n"
        for line in page.results
    ]
    if page.is_complete:
        parts.append(f"event: end\ndata: {json.dumps({'status': page.status})}\n\n")
    return parts


def _subscribe(connection: BaseDatabaseWrapper, wanted: EventFilter) -> int:
    """Subscribe a reader, and return where the feed stands. Raises 503 where too many read."""
    try:
        return keep_reading(connection, wanted)
    except TooManyReaders as error:
        detail = f"Not subscribed: {error}"
        raise Problem(503, "too_many_readers", detail, wait=READING_SECONDS) from None


def _stand(connection: BaseDatabaseWrapper, wanted: EventFilter) -> int:
    """Return where the feed stands, for a reader who does not wait: that is to write nothing."""
    return last_seq(connection)


def _shown(page: Page, viewer: Any) -> EventPage:
    events = shown_events(page.events, viewer)
    return EventPage(results=events, after=page.next_seq, has_more=page.has_more)


def _mistaken(conditions: Mapping[str, Any]) -> str:
    """Return the parameter that is wrong, where one is."""
    for name, value in conditions.items():
        try:
            EventFilter.of(**{name: value})
        except InvalidSubscription:
            return name
    return "kind"
