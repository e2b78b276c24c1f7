"""A standby that lacks the last seconds replaces the server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from django.db import connection

from project.postgres import Server
from taskqueue.models import Task
from tests.chaos import tasks
from tests.chaos.faults.base import POSTGRESQL, Fault
from tests.chaos.faults.outages import no_crashes, through
from tests.chaos.fleet import LEASE
from tests.chaos.history import History

FORGOTTEN = 3.0
"""Seconds after the failover in which workers end the bodies of attempts that the server lost."""


class Standby(Server):
    """A server that follows another one, until it is promoted."""

    def __init__(self, primary: Server, *, port: int) -> None:
        """`port` leads to the primary."""
        super().__init__()
        self._primary_options = [
            f"--host={primary.host}", f"--port={port}", *primary._client_options()[2:]
        ]  # fmt: skip

    def _initialize(self) -> None:
        self._run(
            "pg_basebackup", f"--pgdata={self._data}", *self._primary_options,
            "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync",
        )  # fmt: skip

    def _is_ready(self) -> bool:
        return super()._is_ready() or "standby" in self._status()

    def _status(self) -> str:
        path = self._data / "postmaster.pid"
        return path.read_text() if path.exists() else ""

    def promote(self) -> None:
        """Make it a primary, and return once it is."""
        self.query("SELECT pg_promote(true, 60)")


class Failover(Fault):
    """The server dies; a standby that lacks its last seconds takes its place."""

    name = "failover"
    expectation = "what the server lost is done again; nothing else runs again, or runs wild"
    databases = POSTGRESQL
    seconds = 8.0

    def prepare(self) -> None:
        stage = self.stage
        server = stage.database.server
        assert server is not None
        self._stream = stage.proxy()
        self._standby = Standby(server, port=self._stream.port)
        stage.at_end(self._standby.close)
        self._standby.start()
        self._front = stage.proxy()
        # What the client and the checker use goes the same way as the workers.
        connection.close()
        connection.settings_dict["PORT"] = str(self._front.port)
        env = through(self._front.port, stage.database.environment())
        for pool, concurrency in self.fleet:
            stage.start_worker(pool, concurrency, env=env)

    def strike(self) -> None:
        stage = self.stage
        server = stage.database.server
        assert server is not None
        stage.await_load(0.3)
        long = tasks.work.using(priority=10, metadata={"kind": "long"})
        long.enqueue_many([((str(stage.journal), 3.0), {})] * 20)
        began = stage.now()
        self._first_lost = stage.client.sequence
        self._cut_at = time.monotonic()
        self._stream.tell("refuse")
        stage.pause(0.5, 2.0)
        server.kill()
        self._front.tell(f"lead {self._standby.host} {self._standby.port}")
        stage.pause(*self.chance.choice(((0.0, 1.0), (LEASE, LEASE + 2.0))))
        self._standby.promote()
        self._back_at = time.monotonic()
        connection.close()
        stage.note(self.name, began)
        stage.await_load(1)

    def amend(self, history: History) -> History:
        """Leave out what the server lost: nobody can know of it any more."""
        there = {task.id for task in history.tasks}
        kept = tuple(
            enqueue
            for enqueue in history.enqueues
            if enqueue.sequence < self._first_lost or there.issuperset(enqueue.task_ids)
        )
        self._lost = len(history.enqueues) - len(kept)
        until = self._back_at + FORGOTTEN
        again = {(line.task_id, line.attempt) for line in history.lines if line.at > until}
        lines = tuple(
            line
            for line in history.lines
            if line.at > until
            or (line.at < self._cut_at and (line.task_id, line.attempt) not in again)
        )
        return replace(history, enqueues=kept, lines=lines)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        succeeded = Task.objects.filter(
            name=tasks.work.name, workers=1, status="succeeded"
        ).values_list("id", "attempt", "return_value")
        for task_id, attempt, value in succeeded:
            if value != attempt:
                yield f"attempt {attempt} of {task_id} has the result of another attempt: {value}"

    def note(self) -> str:
        return f"the server lost {self._lost} enqueues"
