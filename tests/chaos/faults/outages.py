"""The server goes away and comes back, completely or session by session."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.db import connection
from django.db.models import Q

from taskqueue.models import Lease, Task
from tests.chaos.faults.base import POSTGRESQL, Fault, too_often
from tests.chaos.fleet import LEASE, LONG_LEASE
from tests.chaos.tasks import OWN_EXIT
from tests.worker_process import END_OTHER_SESSIONS

OWN_CRASH = Q(status="lost", error_message__endswith=f"exit code {OWN_EXIT}.")
"""The leases that ended because a body of the mixture ended its process."""


class ServerKilled(Fault):
    """PostgreSQL is stopped hard and started again, three times over, under load."""

    name = "server_killed"
    expectation = "nothing committed is lost; workers reconnect; nothing is counted as a crash"
    databases = POSTGRESQL
    is_quick = True
    lease = LONG_LEASE
    seconds = 8.0

    def strike(self) -> None:
        stage = self.stage
        server = stage.database.server
        assert server is not None
        began = stage.now()
        for number in range(3):
            stage.await_load(0.15 + 0.2 * number)
            if self.chance.random() < 0.5:
                server.stop("immediate")
            else:
                server.kill()
            stage.pause(0, 1.5)
            server.start()
            connection.close()
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        logs = [worker.log() for worker in self.stage.workers]
        # Once for each outage, and once more where a first answer was followed by an error.
        yield from too_often(logs, "Database away", 8)


class LongOutage(Fault):
    """PostgreSQL is away for longer than a lease."""

    name = "server_away"
    expectation = "bodies end before their leases do, and run again; no crash is counted"
    databases = POSTGRESQL
    seconds = 5.0

    def strike(self) -> None:
        stage = self.stage
        server = stage.database.server
        assert server is not None
        stage.await_load(0.3)
        began = stage.now()
        server.stop("immediate")
        time.sleep(LEASE + self.chance.uniform(1, 3))
        server.start()
        connection.close()
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        yield from too_often((worker.log() for worker in self.stage.workers), "Database away", 4)


class BackendsEnded(Fault):
    """All sessions are terminated, again and again."""

    name = "backends_ended"
    expectation = "they are replaced; outcomes are sent again, and the fence keeps each single"
    databases = POSTGRESQL
    is_quick = True
    lease = LONG_LEASE

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        stage.await_load(0.05)
        while not stage.client.is_over.is_set():
            stage.execute(END_OTHER_SESSIONS)
            stage.pause(0.1, 0.8)
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


class CommitUnanswered(Fault):
    """COMMITs reach the server, and their answers do not come back."""

    name = "commit_unanswered"
    expectation = "an unknown COMMIT is resolved by the fence, never doubled"
    databases = POSTGRESQL
    is_quick = True
    lease = LONG_LEASE

    def prepare(self) -> None:
        stage = self.stage
        self._proxy = stage.proxy()
        env = through(self._proxy.port, stage.database.environment())
        for pool in ("process", "thread"):
            stage.start_worker(pool, 2, env=env)

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        stage.await_load(0.05)
        while not stage.client.is_over.is_set():
            self._proxy.tell(f"swallow {self.chance.randint(1, 3)}")
            # Time to come back: an outage beyond a lease is another fault.
            stage.pause(0.2, 1.2)
        self._proxy.tell("swallow 0")
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        if not any("Database away" in worker.log() for worker in self.stage.workers):
            yield "no answer was swallowed: the fault did not happen"


def no_crashes() -> Iterator[str]:
    """Nothing but a body that ended its process counts as a crash, of itself and of siblings."""
    for task in Task.objects.filter(crashes__gt=0):
        leases = Lease.objects.filter(task=task).order_by("attempt")
        if task.crashes > leases.filter(OWN_CRASH).count():
            told = [(lease.status, lease.error_message[:60]) for lease in leases]
            yield f"{task.id} ({task.metadata.get('kind')}) counts {task.crashes} crashes: {told}"


def through(port: int, environment: dict[str, str], host: str = "127.0.0.1") -> dict[str, str]:
    """An environment in which the database is reached at another address."""
    import json

    address = json.loads(environment["TASKQUEUE_TEST_CONNECTION"])
    address |= {"HOST": host, "PORT": str(port)}
    return {"TASKQUEUE_TEST_CONNECTION": json.dumps(address)}
