"""Server-sent events under ASGI: limits on the number of streams, their duration, and per user."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from threading import Lock
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse

from taskqueue.access.users import identity_of
from taskqueue.conf import get_settings
from taskqueue.exceptions import EventsGone, TooManyReaders

# Seconds: the duration of a stream, between two comments while nothing happens, between two checks
# of what its user may see, and for which a client may leave data unread.
LONGEST_STREAM, COMMENT, LOOK, UNREAD = 600.0, 15.0, 60.0, 30.0
# Seconds after which a refused client should try again.
RETRY_AFTER = 30
T = TypeVar("T")


class OpenStreams:
    """The streams that are open in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: Counter[str] = Counter()

    def take(self, user: Any) -> Callable[[], None] | None:
        """Count another stream. Return a function that ends it, to be called at least once.

        Return None if there are too many.
        """
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
                self._taken -= Counter(left)  # Removes users without streams.
                left.clear()

        return release


OPEN = OpenStreams()


def stream(
    request: HttpRequest,
    user: Any,
    pages: AsyncIterator[T],
    *,
    said: Callable[[T], Sequence[str]],
    silent: Callable[[T], str],
    may_look: Callable[[Any], bool],
) -> StreamingHttpResponse | None:
    """Return a stream of the texts that `said` makes of each page; None if too many are open.

    `silent` makes the text that is sent at first, and while nothing happens. The stream ends with
    the pages, after its duration, and when its user logs out or may no longer see it.
    """
    release = OPEN.take(user)
    if release is None:
        return None
    answer = StreamingHttpResponse(
        _sent(
            pages,
            said=said,
            silent=silent,
            may_go_on=_asker(request, user, may_look),
            release=release,
        ),
        content_type="text/event-stream",
        # Middleware that compresses responses would hold back small parts, but leaves responses
        # alone that have an encoding.
        headers={
            "Cache-Control": "no-store",
            "Content-Encoding": "identity",
            "X-Accel-Buffering": "no",
        },
    )
    # Also if the client has gone before the first part was requested.
    answer._resource_closers.append(release)  # type: ignore[attr-defined]
    return answer


async def _sent(
    pages: AsyncIterator[T],
    *,
    said: Callable[[T], Sequence[str]],
    silent: Callable[[T], str],
    may_go_on: Callable[[], bool],
    release: Callable[[], None],
) -> AsyncIterator[bytes]:
    """Yield the parts of a stream."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    ends_at, look_at = time.monotonic() + LONGEST_STREAM, time.monotonic() + LOOK
    said_at = 0.0
    try:
        async for page in pages:
            now = time.monotonic()
            if now >= look_at:
                look_at = now + LOOK
                if not await sync_to_async(may_go_on, thread_sensitive=True)():
                    return
            parts = list(await sync_to_async(said, thread_sensitive=True)(page))
            if not parts and (not said_at or now - said_at >= COMMENT):
                parts = [silent(page)]
            for part in parts:
                said_at = now
                # A client that does not read is dropped, and may come back.
                ends = loop.call_later(UNREAD, task.cancel) if task is not None else None
                yield part.encode()
                if ends is not None:
                    ends.cancel()
            if now >= ends_at:
                return
    except EventsGone as error:
        gone = json.dumps({"detail": str(error), "oldest": error.oldest})
        # With the number to continue after: a browser comes back with it, and would otherwise get
        # the same events forever.
        yield f"id: {error.oldest - 1}\nevent: gone\ndata: {gone}\n\n".encode()
    except TooManyReaders as error:
        yield f"retry: 60000\n: {error}\n\n".encode()
    finally:
        release()


def look_every() -> float:
    """Return the seconds after which a stream should have a page, even an empty one."""
    return min(COMMENT, LOOK) / 3


def _asker(request: HttpRequest, user: Any, may_look: Callable[[Any], bool]) -> Callable[[], bool]:
    """Return a function that tells whether the user may still look, and has not logged out."""
    session: Any = getattr(request, "session", None)
    key = getattr(session, "session_key", None)

    def may_go_on() -> bool:
        # Not `type(user)`: a session's user is a lazy object of another type.
        rows = getattr(user.__class__, "_default_manager", None)
        now = rows.filter(pk=user.pk).first() if rows is not None else user
        if now is None or not now.is_active or not may_look(now):
            return False
        return key is None or session.exists(key)

    return may_go_on
