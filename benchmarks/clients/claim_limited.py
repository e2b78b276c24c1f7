"""Claim tasks under limits and record them, with the engine's own statements, as a worker does.

One transaction records a batch and claims the next; no body runs in between.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import django
import psutil  # type: ignore[import-untyped]

django.setup()

from benchmarks.clients.claim_and_record import Unwritten, seconds_used  # noqa: E402
from taskqueue.conf import get_settings  # noqa: E402
from taskqueue.core.outcomes import Outcome, OutcomeKind  # noqa: E402
from taskqueue.engine.apart import look_apart  # noqa: E402
from taskqueue.engine.connections import open_worker_connection, transaction  # noqa: E402
from taskqueue.engine.limits.claimant import Claimant  # noqa: E402
from taskqueue.engine.limits.claiming import claim_limited  # noqa: E402
from taskqueue.engine.record import record  # noqa: E402
from taskqueue.engine.retention import EndPolicy  # noqa: E402
from taskqueue.engine.rows import Claimed  # noqa: E402
from taskqueue.engine.sessions import own_session  # noqa: E402
from taskqueue.engine.tally import Subject  # noqa: E402

UNCOUNTED = 10
"""Claims before the first that counts: the session plans its statements, and warms up."""
LEASE = timedelta(seconds=30)
CLAIMANT = Claimant(
    name="benchmark",
    host="benchmark",
    tags=frozenset(),
    serving=lambda names: names,
    quotas=lambda names, size: [(name, size) for name in names],
)


def main(claims: int, batch: int) -> None:
    """Give the milliseconds of a claim, and those of the server's processor, for that many."""
    connection = open_worker_connection(silence=10)
    own_session(connection)
    policy = EndPolicy.of(get_settings())
    tally = Unwritten(lambda lease_id: Subject("", "default", "", None))
    # What was enqueued is taken in before.
    while not (lanes := look_apart(connection, worker="benchmark")[1] - {("", "")}) or len(
        look_apart(connection, worker="benchmark")[1]
    ) > len(lanes):
        claim_limited(
            connection, CLAIMANT, lanes=lanes, want=0, free=0, unknown=[], lease_duration=LEASE
        )
    session = psutil.Process(connection.connection.info.backend_pid)
    claimed: list[Claimed] = []
    seconds = used = 0.0
    for number in range(UNCOUNTED + claims):
        outcomes = [
            Outcome(each.lease_id, OutcomeKind.SUCCEEDED, started=0.001, ended=0.001)
            for each in claimed
        ]
        with transaction(connection):
            assert len(record(connection, outcomes, policy=policy, tally=tally)) == len(outcomes)
            began, used_before = time.perf_counter(), seconds_used(session)
            claimed = claim_limited(
                connection, CLAIMANT, lanes=lanes, want=batch, free=batch, unknown=[],
                lease_duration=LEASE, is_first=True, is_within=True,
            ).claimed  # fmt: skip
            if number >= UNCOUNTED:
                seconds += time.perf_counter() - began
                used += seconds_used(session) - used_before
            assert len(claimed) == batch, len(claimed)
    print(json.dumps([seconds / claims * 1000, used / claims * 1000]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
