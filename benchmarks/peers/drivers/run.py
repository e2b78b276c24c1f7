"""Run what the arguments say with the driver that they name, and print the result as JSON."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from common import Client

WARM_UP = 50


def main(driver: str, command: str, *arguments: str) -> None:
    """Prepare the queue's tables, run a worker until it is killed, or be a client."""
    module: Any = importlib.import_module(driver)
    run = getattr(module, "run", asyncio.run)
    if command != "client":
        result = getattr(module, command)()
        if inspect.isawaitable(result):
            run(_awaited(result))
        return
    opened = module.client()
    if isinstance(opened, AbstractContextManager):
        result = _without_loop(_in_thread(opened, arguments))
    else:
        result = run(_on_loop(opened, arguments))
    print(json.dumps(result))


async def _in_thread(opened: AbstractContextManager[Client], arguments: tuple[str, ...]) -> Any:
    with opened as client:
        return await _measured(client, time.sleep, *arguments)


async def _on_loop(opened: AbstractAsyncContextManager[Client], arguments: tuple[str, ...]) -> Any:
    async with opened as client:
        return await _measured(client, asyncio.sleep, *arguments)


def _without_loop(never_waits: Coroutine[Any, Any, Any]) -> Any:
    """Run what waits for nothing: Django refuses to work where an event loop runs."""
    try:
        never_waits.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("A client without an event loop has waited.")


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _measured(client: Client, sleep: Callable[[float], Any], what: str, *rest: str) -> Any:
    count = int(rest[0])
    if what == "one":
        for number in range(WARM_UP):
            await _awaited(client.one("noop", number))
        began = time.perf_counter()
        for number in range(count):
            await _awaited(client.one("noop", number))
        return count / (time.perf_counter() - began)
    if what == "many":
        await _awaited(client.many("noop", list(range(WARM_UP))))
        began = time.perf_counter()
        await _awaited(client.many("noop", list(range(count))))
        return count / (time.perf_counter() - began)
    if what == "fill":
        return await _awaited(client.many("noop", list(range(count))))
    if what == "moments":
        for _ in range(count):
            await _awaited(sleep(random.uniform(0.02, float(rest[1]))))
            await _awaited(client.one("moment", time.time_ns()))
        return None
    if what == "hold":
        for _ in range(count):
            await _awaited(client.one("hold", float(rest[1])))
        return None
    raise ValueError(what)


if __name__ == "__main__":
    main(*sys.argv[1:])
