"""huey, on PostgreSQL or, with PEERS_REDIS, on Redis: one consumer, one thread per slot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common import BODIES, DSN, REDIS, SLOTS
from huey import PostgresHuey, RedisHuey

if REDIS:
    huey = RedisHuey("peers", url=REDIS, results=False, blocking=True)
else:
    huey = PostgresHuey("peers", dsn=DSN, results=False)


@huey.task()
def noop(argument: Any) -> None:
    """The no-op body."""
    BODIES["noop"](argument)


@huey.task()
def moment(argument: Any) -> None:
    """The body that tells how late it is."""
    BODIES["moment"](argument)


@huey.task()
def hold(argument: Any) -> None:
    """The long body."""
    BODIES["hold"](argument)


TASKS = {"noop": noop, "moment": moment, "hold": hold}


def prepare() -> None:
    """Its tables exist once the storage does."""
    huey.pending_count()


def worker() -> None:
    """The consumer, with threads."""
    consumer = ("huey_consumer", "with_huey.huey", "-k", "thread", "-w", str(SLOTS), "-q", "-n")
    os.execvp(consumer[0], consumer)


class Client:
    """The instance itself."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        TASKS[body](argument)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue one by one, in one transaction where there are any: it has no bulk form."""
        for argument in arguments:
            TASKS[body](argument)


@contextmanager
def client() -> Iterator[Client]:
    """A client over the instance's connection."""
    yield Client()
