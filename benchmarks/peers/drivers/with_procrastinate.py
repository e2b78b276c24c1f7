"""procrastinate with psycopg's pool, `async def` tasks, as many at once as connections allow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from common import BODIES, DSN
from procrastinate import App, PsycopgConnector

CONCURRENCY = 20
app = App(connector=PsycopgConnector(conninfo=DSN, max_size=CONCURRENCY))


@app.task
async def noop(argument: Any) -> None:
    """The no-op body."""
    BODIES["noop"](argument)


@app.task
async def moment(argument: Any) -> None:
    """The body that tells how late it is."""
    BODIES["moment"](argument)


@app.task
def hold(argument: Any) -> None:
    """The long body, in a thread."""
    BODIES["hold"](argument)


TASKS = {"noop": noop, "moment": moment, "hold": hold}


async def prepare() -> None:
    """Its tables."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def worker() -> None:
    """One event loop."""
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="never")


class Client:
    """The application's pool."""

    async def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        await TASKS[body].defer_async(argument=argument)

    async def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue by arrays."""
        await TASKS[body].batch_defer_async(*({"argument": each} for each in arguments))


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """A client over the application's pool."""
    async with app.open_async():
        yield Client()
