"""pgqueuer with asyncpg and uvloop; bodies are `async def`, or in threads (PEERS_BODIES=sync)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import uvloop
from common import BODIES, DSN
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job

BATCH = 100


async def prepare() -> None:
    """Its tables, durable as the others' are."""
    connection = await asyncpg.connect(DSN)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def worker() -> None:
    """One event loop; batches of a hundred."""
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(DSN)))
    for name, body in BODIES.items():
        queue.entrypoint(name)(entry_point(name, body))
    await queue.run(batch_size=BATCH)


def entry_point(name: str, body: Callable[[Any], None]) -> Any:
    """An entry point for that body, on the loop or in a thread."""
    in_thread = os.environ.get("PEERS_BODIES") == "sync" or name == "hold"

    async def called(job: Job) -> None:
        argument = json.loads(job.payload or b"null")
        if in_thread:
            await asyncio.to_thread(body, argument)
        else:
            body(argument)

    return called


class Client:
    """One session."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        await self._queries.enqueue(body, json.dumps(argument).encode())

    async def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue by arrays."""
        payloads: list[bytes | None] = [json.dumps(each).encode() for each in arguments]
        await self._queries.enqueue([body] * len(payloads), payloads, [0] * len(payloads))


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """A client over a session of its own."""
    connection = await asyncpg.connect(DSN)
    yield Client(Queries(AsyncpgDriver(connection)))
    await connection.close()


run = uvloop.run
