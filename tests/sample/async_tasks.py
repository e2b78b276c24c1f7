"""Tasks with `async def` bodies, for the tests of event loops."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from taskqueue import task
from tests.sample.worker_tasks import append, mark_here

_kept: list[Any] = []


@task
async def loop_of() -> list[int]:
    """Where it runs: process, thread and loop."""
    _kept.append(loop := asyncio.get_running_loop())
    return [os.getpid(), threading.get_native_id(), id(loop)]


@task
async def leave_behind(path: str, until: str) -> None:
    """Leaves something on the loop that writes until a file appears."""
    append(path, "start")

    async def go_on() -> None:
        while not os.path.exists(until):
            await asyncio.sleep(0.01)
        append(path, "went on")

    _kept.append(asyncio.create_task(go_on()))


@task
async def leave_transaction_open_async() -> None:
    """Writes from the loop, in a transaction that stays open."""

    def leave_open() -> None:
        transaction.set_autocommit(False)
        mark_here("left open")

    await sync_to_async(leave_open)()


@task
async def mark_async(note: str) -> None:
    """Writes from the loop."""
    await sync_to_async(mark_here)(note)


@task
async def end_program_behind() -> str:
    """Leaves what ends a program on the loop, and waits until that has happened."""

    async def end() -> None:
        raise SystemExit("behind its back")

    _kept.append(asyncio.create_task(end()))
    await asyncio.sleep(0.05)
    return "went on"


@task(timeout=0.3)
async def block_loop(path: str) -> None:
    """Blocks the loop, and swallows whatever is raised."""
    append(path, "start")
    while True:
        try:
            time.sleep(0.01)
        except:  # noqa: E722
            append(path, "swallowed")


@task
async def cancel_own_task() -> None:
    """Ends as asyncio ends what is cancelled, though nobody interrupted it."""
    raise asyncio.CancelledError
