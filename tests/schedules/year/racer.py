"""A scheduler in a process of its own, and a process that ends the tasks."""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.schedules.serving import Scheduler
from taskqueue.engine.sessions import own_session
from taskqueue.models import Task
from tests.schedules.year.plans import Plan
from tests.schedules.year.shared import Shared

STALE = 0.1
"""How often a scheduler works with an earlier time than the others."""
SILENCE = 30.0
BATCH = 1000


WRITES = ("INSERT", "UPDATE", "WITH")


class Fuse:
    """Kills its own process before or after one of its next writes, in mid-transaction."""

    def __init__(self, shared: Shared, chance: random.Random, longest: int) -> None:
        self._shared = shared
        self._left = chance.randint(1, longest)
        self._is_before = chance.random() < 0.5

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Run a statement, and perhaps die."""
        if not sql.lstrip().startswith(WRITES):
            return execute(sql, params, many, context)
        self._shared.count_write()
        self._left -= 1
        if self._left == 0 and self._is_before:
            self._die()
        result = execute(sql, params, many, context)
        if self._left == 0:
            self._die()
        return result

    def _die(self) -> None:
        self._shared.count_fuse()
        os.kill(os.getpid(), signal.SIGKILL)


class _Counting(logging.Handler):
    """Counts what the package logs as an error, and shows it."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(logging.ERROR)
        self._shared = shared
        self._shown = logging.StreamHandler()

    def emit(self, record: logging.LogRecord) -> None:
        self._shared.count_error()
        self._shown.emit(record)


def race(plan: Plan, shared: Shared, seed: int) -> None:
    """Serve the schedules, whatever the clock says, and turn it on when all is served."""
    logging.getLogger("taskqueue.worker").addHandler(_Counting(shared))
    chance = random.Random(seed)
    connection = _opened()
    with connection.execute_wrapper(Fuse(shared, chance, plan.longest_fuse)):
        scheduler = Scheduler()
        while not shared.is_over:
            seen = shared.clock
            stale = timedelta(seconds=chance.random() * 3600)
            now = seen - stale if chance.random() < STALE else seen
            try:
                wait = scheduler.step(connection, now=now)
            except (OperationalError, InterfaceError):
                shared.count_retry()
                continue
            except DatabaseError:  # The scheduler itself lets none of these out.
                shared.count_error()
                continue
            if now == seen and (wait is None or wait > 0):
                _turn(plan, shared, chance, seen, wait)


def _turn(
    plan: Plan, shared: Shared, chance: random.Random, seen: datetime, wait: float | None
) -> None:
    """All is served: go on to the next nominal time, or somewhat or much beyond it."""
    if seen >= plan.until:
        shared.end()
    elif wait is None:
        shared.turn_clock(seen, plan.until)
    else:
        following = seen + timedelta(seconds=wait)
        following += plan.leap(following, chance)
        shared.turn_clock(seen, min(following, plan.until))


def end_tasks(plan: Plan, shared: Shared, seed: int) -> None:
    """End the tasks that are ready, as workers would, some time after they were enqueued."""
    chance = random.Random(seed)
    connection = _opened()
    connections[connection.alias] = connection
    while not shared.is_over:
        try:
            ready = Task.objects.filter(status=TaskStatus.READY).values_list("id", flat=True)
            ids = list(ready[:BATCH])
            Task.objects.filter(id__in=ids).update(
                status=TaskStatus.SUCCEEDED, finished_at=shared.clock, return_value=None
            )
        except (OperationalError, InterfaceError):
            shared.count_retry()
        time.sleep(chance.uniform(0, plan.longest_rest))


def _opened() -> BaseDatabaseWrapper:
    connection = open_worker_connection(silence=SILENCE)
    own_session(connection)
    return connection
