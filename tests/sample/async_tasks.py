"""Tasks with `async def` bodies, for the tests of event loops."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from taskqueue import current, task
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


@task(per_slot=20)
async def meet_in_slot(path: str, paths: list[str]) -> int:
    """Ends once all the others have come."""
    append(path, "here")
    while not all(os.path.exists(each) for each in paths):
        await asyncio.sleep(0.01)
    return os.getpid()


@task(per_slot=20, crash_delay=0.1)
async def work_in_slot(path: str, until: str = "") -> int:
    """Appends when it starts and when it ends, or is interrupted; meanwhile waits for a file."""
    append(path, "start")
    try:
        await asyncio.sleep(0.05)
        while until and not os.path.exists(until):
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        append(path, "interrupted")
        raise
    append(path, "end")
    return current().attempt


@task(per_slot=3)
async def say_in_slot(name: str, times: int) -> None:
    """Logs a line now and then, in all the ways that there are."""
    for number in range(times):
        logging.getLogger("shop").warning("%s %s", name, number)
        await asyncio.sleep(0.01)
        current().log(f"{name} {number}")
        await sync_to_async(logging.getLogger("shop").warning)("%s %s", name, number)
        current().progress(number + 1, times, name)


@task(per_slot=20, crash_delay=0.1)
async def crash_in_slot(go: str) -> int:
    """Takes its child down once a file is there, in its first attempt."""
    while not os.path.exists(go):
        await asyncio.sleep(0.01)
    if current().attempt == 1:
        os._exit(1)
    return current().attempt


@task(per_slot=20)
async def block_slot(path: str, go: str) -> None:
    """Blocks the loop of its slot for ever once a file is there."""
    append(path, "start")
    while not os.path.exists(go):
        await asyncio.sleep(0.01)
    while True:
        time.sleep(0.01)


@task(per_slot=20)
async def swallow_in_slot(path: str) -> None:
    """Swallows what is raised, and lets others go on."""
    append(path, "start")
    while True:
        try:
            await asyncio.sleep(0.05)
        except:  # noqa: E722
            append(path, "swallowed")


@task(per_slot=20)
async def fail_in_slot() -> None:
    """Fails after a moment."""
    await asyncio.sleep(0.01)
    raise ValueError("failed in its slot")
