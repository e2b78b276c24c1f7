"""How many connections a worker holds: what docs/operations.md tells people to reckon with."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.conftest import StartWorker
from tests.sample.tasks import mark, noop
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only, pytest.mark.direct_only]

OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
"""


def sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(OTHERS)
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("pool", ["process", "thread"])
def test_a_worker_holds_two_connections_and_one_for_each_slot_that_uses_the_database(
    pool: str, start_worker: StartWorker
) -> None:
    start_worker("--concurrency", "3", "--pool", pool)
    for result in noop.enqueue_many([((), {})] * 20):
        result.wait(timeout=60)
    # A child may still be declaring its schedules, which ends with its session.
    wait_until(lambda: sessions() == 2, what="the worker's own sessions alone")
    for result in mark.enqueue_many([((), {})] * 60):
        result.wait(timeout=60)
    assert 3 <= sessions() <= 5
    wait_until(lambda: sessions() <= 5)
