"""dramatiq on Redis: one process per slot, with eight threads each, as its command starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dramatiq
from common import BODIES, REDIS, SLOTS
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=REDIS)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(argument: Any) -> None:
    """The no-op body."""
    BODIES["noop"](argument)


@dramatiq.actor
def moment(argument: Any) -> None:
    """The body that tells how late it is."""
    BODIES["moment"](argument)


@dramatiq.actor
def hold(argument: Any) -> None:
    """The long body."""
    BODIES["hold"](argument)


TASKS = {"noop": noop, "moment": moment, "hold": hold}


def prepare() -> None:
    """Nothing: it has no tables."""


def worker() -> None:
    """The command, with as many processes as slots."""
    command = ("dramatiq", "with_dramatiq", "--processes", str(SLOTS), "--threads", "8")
    os.execvp(command[0], command)


class Client:
    """The broker itself."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        TASKS[body].send(argument)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue one by one: it has no bulk form."""
        for argument in arguments:
            TASKS[body].send(argument)


@contextmanager
def client() -> Iterator[Client]:
    """A client over the broker's connection."""
    yield Client()
