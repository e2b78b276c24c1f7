"""Celery on Redis: one process per slot, results ignored, a prefetch that suits short tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from common import BODIES, REDIS, SLOTS

app = Celery("with_celery", broker=REDIS)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=64,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)


@app.task(name="noop")
def noop(argument: Any) -> None:
    """The no-op body."""
    BODIES["noop"](argument)


@app.task(name="moment")
def moment(argument: Any) -> None:
    """The body that tells how late it is."""
    BODIES["moment"](argument)


@app.task(name="hold", acks_late=True, reject_on_worker_lost=True)
def hold(argument: Any) -> None:
    """The long body, acknowledged when it has ended."""
    BODIES["hold"](argument)


TASKS = {"noop": noop, "moment": moment, "hold": hold}


def prepare() -> None:
    """Nothing: it has no tables."""


def worker() -> None:
    """The command, with as many processes as slots."""
    command = (
        *("celery", "-A", "with_celery", "worker", "--concurrency", str(SLOTS)),
        *("--loglevel", "WARNING", "--without-gossip", "--without-mingle"),
    )
    os.execvp(command[0], command)


class Client:
    """One producer."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        TASKS[body].apply_async((argument,), producer=self._producer)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue one by one over one producer: it has no bulk form."""
        for argument in arguments:
            TASKS[body].apply_async((argument,), producer=self._producer)


@contextmanager
def client() -> Iterator[Client]:
    """A client over a producer of the pool."""
    with app.producer_pool.acquire(block=True) as producer:
        yield Client(producer)
