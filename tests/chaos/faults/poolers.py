"""The pooler between the workers and the server goes away and comes back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

from tests.chaos.faults.base import POSTGRESQL, Fault, too_often
from tests.chaos.faults.outages import no_crashes, through
from tests.chaos.fleet import LONG_LEASE
from tests.pooler import PROGRAM, WHERE, Pooler

SIZE = 4
"""Server connections, which the workers share with other clients: fewer than there are slots."""


class PoolerKilled(Fault):
    """PgBouncer in transaction mode, through which all workers connect, is killed three times."""

    name = "pooler_killed"
    expectation = "nothing is lost or dropped; no other client of the pool notices a worker"
    databases = POSTGRESQL
    lease = LONG_LEASE
    seconds = 8.0

    @classmethod
    def obstacle(cls) -> str:
        return "" if shutil.which(PROGRAM, path=WHERE) else "there is no program pgbouncer"

    def prepare(self) -> None:
        stage = self.stage
        self._pooler = Pooler(stage.database.connection, "transaction", size=SIZE)
        stage.at_end(self._pooler.close)
        self._pooler.start()
        self._clean = self._pooler.session_state()
        self._looks = 0
        self._noticed: set[str] = set()
        env = through(self._pooler.port, stage.database.environment())
        for pool, concurrency in self.fleet:
            stage.start_worker(pool, concurrency, env=env)

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        for number in range(3):
            stage.await_load(0.15 + 0.2 * number)
            self._be_another_client()
            self._pooler.kill()
            stage.pause(0, 1.5)
            self._pooler.start()
        stage.note(self.name, began, *stage.workers)
        while not stage.client.is_over.is_set():
            self._be_another_client()
            stage.pause(0, 0.2)

    def _be_another_client(self) -> None:
        self._looks += 1
        if (found := self._pooler.session_state()) != self._clean:
            self._noticed.add(str(found))

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        yield from (f"a client of the pool met {found}" for found in sorted(self._noticed))
        yield from self._left_behind()
        logs = [worker.log() for worker in self.stage.workers]
        # Once for each outage, and once more where a first answer was followed by an error.
        yield from too_often(logs, "Database away", 8)
        for phrase in ("Batch refused", "Log lines refused", "prepared statement", "Workers lost"):
            yield from too_often(logs, phrase, 0)
        if not all("Database away" in log for log in logs):
            yield "a worker noticed nothing: it did not connect through the pooler"

    def _left_behind(self) -> Iterator[str]:
        """What the workers, which have ended, left on any connection of the pool."""
        with ExitStack() as stack:
            for _ in range(SIZE):  # All of them at once: none is given out twice.
                client = stack.enter_context(self._pooler.connect())
                stack.enter_context(client.transaction())
                if (found := self._pooler.session_state(client)) != self._clean:
                    yield f"the workers left {found}"

    def note(self) -> str:
        return f"other clients of the pool looked {self._looks} times"
