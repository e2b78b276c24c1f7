"""Claim 100 tasks and record them, with the engine's own statements, as a worker does.

One transaction records a batch and claims the next; no body runs in between.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import django
import psutil  # type: ignore[import-untyped]
from django.db.backends.base.base import BaseDatabaseWrapper

django.setup()

from taskqueue.conf import get_settings  # noqa: E402
from taskqueue.core.outcomes import Outcome, OutcomeKind  # noqa: E402
from taskqueue.engine.connections import open_worker_connection, transaction  # noqa: E402
from taskqueue.engine.dialect import dialect_for  # noqa: E402
from taskqueue.engine.record import record  # noqa: E402
from taskqueue.engine.retention import EndPolicy  # noqa: E402
from taskqueue.engine.rows import Claimed  # noqa: E402
from taskqueue.engine.sessions import own_session  # noqa: E402
from taskqueue.engine.tally import Subject, Tally  # noqa: E402

BATCH = 100
UNCOUNTED = 10
"""Batches before the first that counts: the session plans its statements, and warms up."""


class Unwritten(Tally):
    """A tally that is never written, so that claiming and recording are measured alone."""

    def write(self, connection: BaseDatabaseWrapper) -> None:
        """Forget what was counted."""
        self.abandon()


def main(tasks: int) -> None:
    """Give the rate at which that many were recorded, and the session's microseconds for each."""
    connection = open_worker_connection(silence=10)
    own_session(connection)
    wording, policy = dialect_for(connection), EndPolicy.of(get_settings())
    tally = Unwritten(lambda lease_id: Subject("", "default", "", None))
    claimed: list[Claimed] = []
    batches = tasks // BATCH
    session = psutil.Process(connection.connection.info.backend_pid)
    began, used = 0.0, 0.0
    for number in range(UNCOUNTED + batches + 1):
        if number == UNCOUNTED:
            began, used = time.perf_counter(), seconds_used(session)
        outcomes = [
            Outcome(each.lease_id, OutcomeKind.SUCCEEDED, started=0.001, ended=0.001)
            for each in claimed
        ]
        with transaction(connection):
            recorded = record(connection, outcomes, policy=policy, tally=tally)
            assert len(recorded) == len(outcomes)
            if number < UNCOUNTED + batches:
                claimed = wording.claim(
                    connection,
                    worker="benchmark",
                    quotas=[("default", BATCH)],
                    unknown=[],
                    lease_duration=timedelta(seconds=30),
                )
                assert len(claimed) == BATCH
    count = batches * BATCH
    rate = count / (time.perf_counter() - began)
    print(json.dumps([rate, (seconds_used(session) - used) / count * 1e6]))


def seconds_used(process: psutil.Process) -> float:
    """Processor time of a process, which no load of the machine lengthens much."""
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main(int(sys.argv[1]))
