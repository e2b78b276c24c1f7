"""Server-sent events of progress, on ASGI."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.utils import translation

from taskqueue.engine.events.following import let_go
from taskqueue.progress.looking import Look
from taskqueue.progress.looking import look as look_at
from taskqueue.progress.tokens import Claims

# The most streams of one process.
MOST = 100
# Seconds between two looks; they grow while nothing changes.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
# A comment keeps proxies from closing the connection.
SILENCE = 15.0
# The client then comes back, and its permission is checked again.
LONGEST = 600.0
_open = 0


def are_full() -> bool:
    """Return whether this process has as many streams as it may."""
    return _open >= MOST


async def events(claims: Claims, *, language: str | None) -> AsyncIterator[bytes]:
    """Yield an event at each change, until it has finished, the token expires, or time is over."""
    global _open
    _open += 1
    try:
        began = spoke = time.monotonic()
        pause, last = FIRST_PAUSE, ""
        while True:
            seen = await sync_to_async(_look, thread_sensitive=True)(claims, language)
            text = json.dumps(seen.as_json())
            now = time.monotonic()
            if text != last:
                yield f"event: progress\ndata: {text}\n\n".encode()
                last, spoke, pause = text, now, FIRST_PAUSE
            elif now - spoke >= SILENCE:
                yield b": still here\n\n"
                spoke = now
            if seen.is_finished or now - began >= LONGEST or claims.expires_at <= time.time():
                return
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.2)
    finally:
        _open -= 1


def _look(claims: Claims, language: str | None) -> Look:
    try:
        with translation.override(language):
            return look_at(claims)
    finally:
        let_go()  # Each stream has its own thread, which would keep a connection.
