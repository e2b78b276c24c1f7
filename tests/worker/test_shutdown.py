"""A worker ends although the database keeps it waiting: its statements wait for others' locks."""

from __future__ import annotations

from contextlib import closing

import pytest
from django.db import connection
from django.db.transaction import atomic

from taskqueue.conf import get_settings
from taskqueue.engine.statement import fetch
from taskqueue.models import Worker
from taskqueue.worker import supervisor
from taskqueue.worker.meter import Meter
from taskqueue.worker.presence import Presence
from taskqueue.worker.state import WorkerOptions, WorkerState
from tests.conftest import StartWorker
from tests.engine.steps import another_connection
from tests.engine.test_workers import registered
from tests.worker_process import wait_until

pytestmark = [pytest.mark.postgresql_only, pytest.mark.django_db(transaction=True)]
WAITS = """
SELECT 1 FROM pg_locks WHERE relation = 'taskqueue_task'::regclass AND NOT granted
"""


@pytest.mark.slow
def test_a_worker_ends_while_its_claim_waits_for_the_table_of_tasks(
    start_worker: StartWorker,
) -> None:
    worker = start_worker("--name", "w1", "--shutdown-timeout", "600")
    with atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE taskqueue_task IN ACCESS EXCLUSIVE MODE")
        wait_until(lambda: fetch(connection, WAITS), 60, what="a statement that waits")
        worker.terminate()
        assert worker.wait(60) == 0
    assert Worker.objects.get().status == "stopped"
    assert "Statement cancelled" in worker.log()


def test_a_worker_does_not_wait_for_the_lock_of_its_row_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "REPORT_TIMEOUT", 0.1)
    own, found = registered("w1")
    state = WorkerState(WorkerOptions(name="w1"), get_settings(), Meter(), lambda: None)
    state.registration, state.registered = own, found
    with another_connection() as holder, closing(Presence(own.incarnation)) as presence:
        holder.cursor().execute("BEGIN")
        holder.cursor().execute("SELECT 1 FROM taskqueue_worker FOR UPDATE")
        supervisor._sign_off(state, presence, has_work=False)
        assert "could not sign off" in caplog.text
        assert Worker.objects.get().status == "running"
        holder.cursor().execute("COMMIT")
        supervisor._sign_off(state, presence, has_work=False)
    assert Worker.objects.get().status == "stopped"
