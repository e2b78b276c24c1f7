"""oban with psycopg's pool, a hundred jobs at once in one queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from common import BODIES, DSN
from oban import Oban
from oban import worker as of_oban
from oban.schema import install_sql
from psycopg_pool import AsyncConnectionPool

LIMIT = 100


@of_oban(queue="default")
class Body:
    """Any of the bodies, by name."""

    async def process(self, job: Any) -> None:
        """Run it."""
        name, argument = job.args["body"], job.args["argument"]
        if name == "hold":
            await asyncio.to_thread(BODIES[name], argument)
        else:
            BODIES[name](argument)


def prepare() -> None:
    """Its tables."""
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute(install_sql())


async def worker() -> None:
    """One event loop."""
    async with (
        AsyncConnectionPool(DSN, min_size=2, max_size=10, open=False) as pool,
        Oban(pool=pool, queues={"default": LIMIT}),
    ):
        await asyncio.Event().wait()


class Client:
    """An instance that only enqueues."""

    def __init__(self, oban: Oban) -> None:
        self._oban = oban

    async def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        await self._oban.enqueue(Body.new({"body": body, "argument": argument}))  # type: ignore[attr-defined]

    async def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue in one statement."""
        await self._oban.enqueue_many(
            [Body.new({"body": body, "argument": each}) for each in arguments]  # type: ignore[attr-defined]
        )


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """A client over a pool of its own."""
    async with (
        AsyncConnectionPool(DSN, min_size=1, max_size=2, open=False) as pool,
        Oban(pool=pool) as oban,
    ):
        yield Client(oban)
