"""Tasks of the tests: each shows one behaviour of a body."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import time
from datetime import timedelta
from typing import Any, Literal

from django.db import connection, transaction

from taskqueue import (
    Cancel,
    Context,
    Fixed,
    GiveUp,
    RetryLater,
    Snooze,
    current,
    task,
)
from tests.sample.models import Effect

logger = logging.getLogger(__name__)


@task
def noop() -> None:
    """Nothing."""


@task
def add(a: int, b: int = 1) -> int:
    """A sum."""
    return a + b


@task
def echo(*args: Any, **kwargs: Any) -> list[Any]:
    """What it was given."""
    return [args, kwargs]


@task(takes_context=True)
def mark(context: Context, note: str = "") -> int:
    """Leaves an effect in the database."""
    Effect.objects.create(task_id=context.task_id, attempt=context.attempt, note=note)
    return context.attempt


@task(takes_context=True, atomic=True, max_attempts=3, backoff=Fixed(0))
def mark_atomically(context: Context, fail_times: int = 0) -> str:
    """Leaves an effect that commits with its success, or not at all."""
    Effect.objects.create(task_id=context.task_id, attempt=context.attempt, note="atomic")
    if context.attempt <= fail_times:
        raise ValueError("rolled back")
    return "committed"


@task(atomic=True)
def die_atomically(note: str) -> None:
    """Dies between its effect and its commit."""
    Effect.objects.create(task_id=current().task_id, attempt=current().attempt, note=note)
    os._exit(9)


@task
def fail(message: str = "it failed") -> None:
    """Always raises."""
    raise ValueError(message)


@task(takes_context=True, max_attempts=5, backoff=Fixed(0))
def fail_until(context: Context, attempt: int) -> int:
    """Raises until the given attempt."""
    if context.attempt < attempt:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


def _ask_backoff(exception: BaseException, task_result: Any) -> timedelta:
    return timedelta(seconds=0.01 * len(task_result.args))


@task(max_attempts=2, backoff=_ask_backoff)
def fail_with_callable_backoff(one: int) -> None:
    """Raises, with a backoff that is a function."""
    raise ValueError(one)


@task(max_attempts=5, backoff=Fixed(0), retry_for=[ValueError], give_up_on=[UnicodeError])
def fail_with(class_name: str) -> None:
    """Raises an exception of a builtin class."""
    import builtins

    if class_name == "UnicodeError":
        raise UnicodeError("given up on")
    raise getattr(builtins, class_name)("as asked")


@task(takes_context=True, snooze_on=[BlockingIOError], backoff=Fixed(0))
def wait_for_lock(context: Context, times: int) -> int:
    """Raises an error that does not count until it has been tried that often."""
    if context.attempt <= times:
        raise BlockingIOError("The lock is taken.")
    return context.attempt


@task(takes_context=True)
def retry_later(context: Context, times: int) -> int:
    """Asks to be retried, whatever max_attempts says."""
    if context.attempt <= times:
        raise RetryLater(0)
    return context.attempt


@task(takes_context=True)
def snooze(context: Context, times: int) -> int:
    """Sleeps on it."""
    if context.attempt <= times:
        raise Snooze(timedelta(0))
    return context.attempt


@task(max_attempts=5)
def give_up() -> None:
    """Fails for good."""
    raise GiveUp("no use")


@task
def cancel_itself() -> None:
    """Ends as cancelled."""
    raise Cancel("not needed")


@task
def sleep(seconds: float) -> float:
    """Sleeps in one call."""
    time.sleep(seconds)
    return seconds


@task
async def sleep_async(seconds: float) -> float:
    """Sleeps on the event loop."""
    await asyncio.sleep(seconds)
    return seconds


@task
async def current_async() -> str:
    """Finds its context."""
    await asyncio.sleep(0)
    return current().task_id


@task
async def query_async() -> int:
    """Uses the ORM from the event loop."""
    await Effect.objects.acreate(task_id=current().task_id, attempt=current().attempt)
    return await Effect.objects.acount()


@task(timeout=0.3)
def loop_for_ever() -> None:
    """Never ends by itself."""
    while True:
        pass


@task(timeout=0.3)
def loop_stubbornly() -> None:
    """Cannot be interrupted."""
    while True:
        try:
            while True:
                time.sleep(0.01)
        except:  # noqa: E722
            pass


@task
def hold_on() -> None:
    """As the above, without a timeout."""
    while True:
        try:
            while True:
                time.sleep(0.01)
        except:  # noqa: E722
            pass


@task(takes_context=True)
def wait_for_stop(context: Context) -> None:
    """Ends when it is asked to."""
    while True:
        context.check()
        time.sleep(0.01)


@task
def segfault() -> None:
    """Dies of a signal."""
    ctypes.string_at(0)


@task
def exit_hard(code: int = 0) -> None:
    """Ends its process without a word."""
    os._exit(code)


@task
def raise_exit(class_name: str) -> None:
    """Raises what usually ends a program."""
    raise {
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
        "GeneratorExit": GeneratorExit,
    }[class_name]("ended")


@task
def return_set() -> set[int]:
    """Returns what JSON does not have."""
    return {1, 2}


@task
def return_size(size: int) -> str:
    """Returns a long text."""
    return "x" * size


class Unprintable(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@task
def raise_unprintable() -> None:
    """Raises it."""
    raise Unprintable


@task
def raise_long(size: int) -> None:
    """Raises with a long message that no database likes."""
    raise ValueError("\x00" + "é\ud800" * size)


@task
def talk(lines: int, length: int = 10) -> None:
    """Says something, in both ways."""
    for number in range(lines):
        current().log(f"line {number} " + "x" * length)
    logger.warning("said by a logger")


@task
def log_line() -> None:
    """Says one thing."""
    current().log("a line")


@task(takes_context=True)
def report_progress(context: Context, wait_for: str = "") -> None:
    """Says how far it is, and waits for a file to appear."""
    context.progress(1, 4, "a quarter", detail={"rows": [1, "ä"]})
    while wait_for and not os.path.exists(wait_for):
        time.sleep(0.01)


@task
def leave_transaction_open() -> None:
    """Leaves a transaction open, in two ways at once."""
    transaction.set_autocommit(False)
    Effect.objects.create(task_id=current().task_id, attempt=1, note="left open")


@task
def leave_atomic_open() -> None:
    """Enters an atomic block that it never leaves."""
    transaction.atomic().__enter__()
    Effect.objects.create(task_id=current().task_id, attempt=1, note="left open")


@task
def session_of() -> list[Any]:
    """The database session and the process that run it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return [cursor.fetchone()[0], os.getpid()]
    Effect.objects.count()
    return [id(connection.connection), os.getpid()]


@task
def process_of() -> int:
    """The process that runs it."""
    return os.getpid()


@task
def append_to(path: str, text: str) -> None:
    """An effect outside the database, in one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{current().task_id} {current().attempt} {text}\n".encode())
    finally:
        os.close(descriptor)


@task
def append_and_wait(path: str, wait_for: str) -> None:
    """An effect outside the database, then waits for a file to appear."""
    append_to.body(path, "started")
    while not os.path.exists(wait_for):
        time.sleep(0.01)


@task(unique_key=lambda key: f"only:{key}")
def unique(key: str) -> str:
    """One at a time for each key."""
    return key


@task(sensitive=["password"])
def log_in(user: str, password: str) -> str:
    """Has a secret."""
    return user


# Autodiscovery imports this module only.
from tests.sample import (  # noqa: E402
    async_tasks,  # noqa: F401
    client_tasks,  # noqa: F401
    event_tasks,  # noqa: F401
    framework_tasks,  # noqa: F401
    limit_tasks,  # noqa: F401
    rest_tasks,  # noqa: F401
    shared_tasks,  # noqa: F401
    traced_tasks,  # noqa: F401
    typed_tasks,  # noqa: F401
    worker_tasks,  # noqa: F401
    workflow_tasks,  # noqa: F401
)


@task(api=True)
def greet(name: str, times: int = 1, *, tone: Literal["warm", "cold"] = "warm") -> str:
    """What may be enqueued over REST.

    With a signature that has something of each.
    """
    return " ".join([f"Hello, {name}."] * times) if tone == "warm" else name
