"""A real worker on the test's database, and where there can be none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from unittest import mock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from taskqueue.testing import live_worker
from taskqueue.testing.live import LiveWorker, check_is_shared
from tests.sample.models import Effect
from tests.sample.tasks import mark, process_of

SQLITE = "django.db.backends.sqlite3"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_real_worker_runs_tasks_that_the_test_commits() -> None:
    with live_worker("--concurrency", "1", "--name", "live") as worker:
        assert mark.enqueue("here").wait(timeout=60).worker_names == ["live"]
        assert process_of.enqueue().wait(timeout=60).return_value not in (worker.pid, os.getpid())
    assert [effect.note for effect in Effect.objects.all()] == ["here"]


@pytest.mark.slow
@pytest.mark.sqlite_only  # What it tells has nothing to do with the database.
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_does_not_start_tells_why() -> None:
    with (
        pytest.raises(AssertionError, match=r"ended with 1:\n.*is not the name of a queue"),
        live_worker("--queues", "no queue!"),
    ):
        pytest.fail("Nothing is to be tested without a worker.")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_test_may_end_at_once_and_its_own_error_is_the_one_that_is_seen() -> None:
    with pytest.raises(KeyError, match="of the test") as raised, live_worker() as worker:
        raise KeyError("of the test")
    assert worker.process.returncode == 0, "it had begun, and ended as it was told"
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.django_db
def test_in_a_transaction_there_can_be_none() -> None:
    with pytest.raises(ImproperlyConfigured, match="TransactionTestCase"), live_worker():
        pass


def test_on_a_database_in_memory_there_can_be_none() -> None:
    in_memory = DatabaseWrapper({"NAME": ":memory:", "OPTIONS": {}}, "default")
    with pytest.raises(ImproperlyConfigured, match="Give it a file"):
        check_is_shared(in_memory)


@pytest.mark.django_db(transaction=True)
def test_nor_beside_a_second_database_in_memory() -> None:
    in_memory = {**connection.settings_dict, "ENGINE": SQLITE, "NAME": ":memory:", "OPTIONS": {}}
    refused = pytest.raises(ImproperlyConfigured, match=r"database 'second' is in memory")
    with mock.patch.dict(connections.settings, second=in_memory), refused, live_worker():
        pass
    del connections["second"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_that_drains_has_done_so_at_the_end_of_the_block() -> None:
    results = [mark.enqueue("drained") for _ in range(2)]
    with live_worker("--drain", "--concurrency", "1"):
        pass
    for result in results:
        result.refresh()
    assert [result.status for result in results] == ["succeeded", "succeeded"]


def test_one_that_does_not_end_is_killed_and_tells_what_it_said(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("so far")
    worker = LiveWorker(subprocess.Popen([sys.executable, "-c", "input()"], stdin=PIPE), log)
    with (
        mock.patch("taskqueue.testing.live.LONGEST_END", 0.01),
        pytest.raises(AssertionError, match=r"The worker has not ended in 0.01 s:\nso far"),
    ):
        worker.wait_until_ended()
    assert worker.process.returncode == -signal.SIGKILL
    assert worker.process.stdin
    worker.process.stdin.close()


@pytest.mark.django_db(transaction=True)
def test_the_command_is_refused_in_the_process_of_the_tests() -> None:
    with pytest.raises(CommandError, match=r"run_due\(\)"):
        call_command("runworker", "--drain")
