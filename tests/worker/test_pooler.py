"""Workers behind PgBouncer in transaction mode: no other client of the pool notices them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from taskqueue.models import Worker
from tests.conftest import StartWorker, require_tool
from tests.pooler import Pooler
from tests.sample.tasks import noop, sleep
from tests.worker.conftest import through
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]
SETTINGS = ("enable_seqscan", "enable_hashjoin", "plan_cache_mode", "jit", "search_path",
            "idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")  # fmt: skip
STATE = f"""
SELECT ARRAY(SELECT pg_listening_channels()),
       ARRAY(SELECT statement FROM pg_prepared_statements),
       ARRAY(SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       {", ".join(f"current_setting('{name}')" for name in SETTINGS)}
"""


@pytest.fixture
def pooler(transactional_db: None) -> Iterator[Pooler]:
    """One server connection for everybody: what a client leaves on it, the next one meets."""
    require_tool("pgbouncer")
    with Pooler(connection.settings_dict, "transaction", size=1) as found:
        yield found


def state(pooler: Pooler) -> tuple[Any, ...]:
    with pooler.connect() as client:
        found = client.execute(STATE).fetchone()
    assert found is not None
    return found


def test_other_clients_of_the_pool_notice_no_worker(
    start_worker: StartWorker, pooler: Pooler
) -> None:
    before = state(pooler)
    worker = start_worker(env=through(pooler), settings={"LEASE_DURATION": 6, "PING_INTERVAL": 1})
    for _ in range(3):  # Idle between them, and often enough that statements would be prepared.
        noop.enqueue().wait(timeout=60)
        assert state(pooler) == before
    sleep.enqueue(60)
    wait_until(lambda: Worker.objects.filter(running_leases=1).exists(), 60, what="a ping")
    assert state(pooler) == before
    worker.kill()
    worker.wait()
    assert state(pooler) == before
