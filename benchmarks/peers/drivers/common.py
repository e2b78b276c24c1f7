"""Code that the drivers of all queues share: the task bodies, and the protocol of a client.

A driver is a module that runs with the packages of the peers and never imports another driver. It
defines three names: `prepare` creates the queue's tables, `worker` runs a worker until it is
killed, `client` opens what enqueues; some define `run` too, which runs a coroutine. What a body
does is seen from outside by the bytes that it appends to a file, whatever the queue stores about
it.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

DSN = os.environ.get("PEERS_DSN", "")
REDIS = os.environ.get("PEERS_REDIS", "")
SLOTS = int(os.environ.get("PEERS_SLOTS", "2"))
"""How many processes or threads a worker may use where it asks."""
_file = os.open(os.environ["PEERS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def noop(number: int) -> None:
    """Leave one byte."""
    os.write(_file, b"x")


def moment(sent: int) -> None:
    """Leave the nanoseconds since the enqueue was called."""
    os.write(_file, struct.pack("<q", time.time_ns() - sent))


def hold(seconds: float) -> None:
    """Leave a byte at the start and one at the end."""
    os.write(_file, b"b")
    time.sleep(seconds)
    os.write(_file, b"e")


BODIES: dict[str, Callable[[Any], None]] = {"noop": noop, "moment": moment, "hold": hold}


class Client(Protocol):
    """Both return once the tasks are durable in the queue, or an awaitable of that."""

    def one(self, body: str, argument: Any) -> Awaitable[Any] | Any:
        """Enqueue one."""
        ...

    def many(self, body: str, arguments: list[Any]) -> Awaitable[Any] | Any:
        """Enqueue as many as the queue's own bulk form takes."""
        ...


Opened = AbstractContextManager[Client] | AbstractAsyncContextManager[Client]


def django_database() -> dict[str, Any]:
    """The entry of `DATABASES` for the database of this run."""
    parts = urlsplit(DSN)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": "",
        "HOST": parts.hostname,
        "PORT": str(parts.port),
        "CONN_MAX_AGE": None,
    }
