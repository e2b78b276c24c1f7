"""rq on Redis: a worker that does not fork for each job, by its documentation the fastest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import common
from common import REDIS
from redis import Redis
from rq import Queue

queue = Queue(connection=Redis.from_url(REDIS))


def prepare() -> None:
    """Nothing: it has no tables."""


def worker() -> None:
    """One worker: it runs one job at a time."""
    command = ("rq", "worker", "--quiet", "--worker-class", "rq.SimpleWorker", "--url", REDIS)
    os.execvp(command[0], command)


class Client:
    """The queue itself."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        queue.enqueue(getattr(common, body), argument, result_ttl=0)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue by its pipeline."""
        function = getattr(common, body)
        queue.enqueue_many(
            [Queue.prepare_data(function, (each,), result_ttl=0) for each in arguments]
        )


@contextmanager
def client() -> Iterator[Client]:
    """A client over the queue's connection."""
    yield Client()
