"""Leases of a worker whose processes have ended on this host are freed at once."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from taskqueue.control import request_stop
from taskqueue.engine import takeover
from taskqueue.engine.registration import Registration
from taskqueue.engine.takeover import ENDED_ON_HOST, LOST
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, Task, Worker
from taskqueue.monitoring.why import why
from taskqueue.worker import presence
from taskqueue.worker.presence import Departures, Presence
from taskqueue.worker.supervisor import enrol
from tests.conftest import StartWorker
from tests.engine.lost_workers import YEAR, lose, worker_row
from tests.engine.steps import another_connection, claim_one, future, lease_of, policy, task_of
from tests.sample import tasks
from tests.sample.tasks import noop
from tests.worker_process import children_of, guardian_of, wait_until

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(sys.platform != "linux", reason="/dev/shm is Linux's"),
]
DAY = timedelta(days=1)


@pytest.fixture
def here() -> Iterator[Presence]:
    """The processes of a worker on this host."""
    found = Presence(uuid4())
    assert found.fileno is not None
    yield found
    found.withdraw()


def look() -> int:
    return Departures(policy(), Tally()).step(connection)  # type: ignore[arg-type]


def claimed_by(incarnation: Any, **fields: Any) -> Any:
    noop.using(lease_duration=YEAR, crash_delay=60).enqueue()
    worker_row(incarnation=incarnation, **fields)
    return claim_one()


def test_the_leases_of_a_worker_whose_processes_have_ended_are_lost_at_once(
    here: Presence,
) -> None:
    claimed = claimed_by(here.incarnation)
    here.close()
    assert look() == 1
    lease, task = lease_of(claimed), task_of(claimed)
    assert (lease.status, lease.error_class, lease.error_message) == ("lost", LOST, ENDED_ON_HOST)
    assert (task.status, task.crashes) == ("retrying", 1)
    assert Worker.objects.get().status == "lost"
    assert here.incarnation not in presence.others()


def test_a_task_that_fails_with_its_worker_is_one_error(
    here: Presence, caplog: pytest.LogCaptureFixture
) -> None:
    noop.using(lease_duration=YEAR, max_crashes=1).enqueue()
    worker_row(incarnation=here.incarnation)
    claimed = claim_one()
    here.close()
    assert look() == 1
    assert task_of(claimed).status == "failed"
    [error] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert error.name == "django.tasks"
    assert ENDED_ON_HOST in error.getMessage()


def test_each_attempt_that_is_retried_is_a_warning(
    here: Presence, caplog: pytest.LogCaptureFixture
) -> None:
    claims = [claimed_by(here.incarnation) for _ in range(3)]
    here.close()
    assert look() == 3
    warnings = [record for record in caplog.records if record.name == "django.tasks"]
    assert [record.levelname for record in warnings] == ["WARNING"] * 3
    for record, claimed in zip(warnings, claims, strict=True):
        assert f"id={UUID(str(claimed.task_id))} attempt=1 queue=default" in record.getMessage()
        assert record.getMessage().endswith(f"error={LOST}: {ENDED_ON_HOST}")


def test_a_process_that_is_left_keeps_them(here: Presence) -> None:
    """A child may outlive its parent for a moment, and holds the same lock."""
    claimed = claimed_by(here.incarnation)
    assert here.fileno is not None
    childs = os.dup(here.fileno)
    here.close()
    assert look() == 0
    assert lease_of(claimed).status == "running"
    os.close(childs)
    assert look() == 1


def test_of_a_worker_that_left_nothing_here_nothing_is_known(here: Presence) -> None:
    """As of one on another host, or in a container that shares no memory with this one."""
    claimed = claimed_by(uuid4(), host=os.uname().nodename, pid=2**22)
    here.close()
    assert look() == 0
    assert lease_of(claimed).status == "running"


def test_leases_of_another_process_with_the_same_name_are_left_alone(here: Presence) -> None:
    claimed = claimed_by(here.incarnation)
    worker_row(incarnation=uuid4())
    here.close()
    assert look() == 0
    assert lease_of(claimed).status == "running"


def test_files_of_other_users_and_other_kinds_prove_nothing(
    here: Presence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    claimed = claimed_by(here.incarnation)
    here.close()
    with monkeypatch.context() as changed:
        changed.setattr(os, "geteuid", lambda: 12345)
        assert look() == 0
    with monkeypatch.context() as changed:
        mounts = tmp_path / "mounts"
        mounts.write_text("server:/export /dev/shm nfs4 rw 0 0\n")
        changed.setattr(presence, "MOUNTS", mounts)
        assert look() == 0
        assert Presence(uuid4()).fileno is None
    assert lease_of(claimed).status == "running"


def test_the_file_of_a_worker_that_no_database_knows_goes_after_a_week(here: Presence) -> None:
    path = presence.DIRECTORY / f"{presence.PREFIX}{here.incarnation.hex}"
    long_ago = time.time() - presence.KEPT - 60
    os.utime(path, (long_ago, long_ago))  # It ran for as long.
    look()
    here.close()
    look()
    assert here.incarnation in presence.others()
    os.utime(path, (long_ago, long_ago))
    assert look() == 0
    assert here.incarnation not in presence.others()


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_lease_that_is_being_recorded_is_left_for_the_next_look(here: Presence) -> None:
    claimed = claimed_by(here.incarnation)
    here.close()
    with another_connection() as worker:
        with transaction.atomic():
            Lease.objects.filter(id=claimed.lease_id).update(progress=1)
            assert Departures(policy(), Tally()).step(worker) == 0
        assert here.incarnation in presence.others()
        assert Departures(policy(), Tally()).step(worker) == 1
    assert lease_of(claimed).status == "lost"


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_lease_whose_task_somebody_holds_is_left_for_the_next_look(here: Presence) -> None:
    held, free = claimed_by(here.incarnation), claimed_by(here.incarnation)
    here.close()
    with another_connection() as worker:
        with transaction.atomic():
            Task.objects.filter(id=task_of(held).id).update(priority=1)
            assert Departures(policy(), Tally()).step(worker) == 1
            assert (lease_of(held).status, lease_of(free).status) == ("running", "lost")
        assert here.incarnation in presence.others()
        assert Departures(policy(), Tally()).step(worker) == 1
    assert lease_of(held).status == "lost"
    assert here.incarnation not in presence.others()


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_row_somebody_holds_is_left_for_the_next_look(here: Presence) -> None:
    claimed_by(here.incarnation)
    here.close()
    with another_connection() as worker:
        with transaction.atomic():
            Worker.objects.update(trouble="")
            assert Departures(policy(), Tally()).step(worker) == 0
        assert here.incarnation in presence.others()
        assert Departures(policy(), Tally()).step(worker) == 1


def test_more_leases_than_a_batch_end_in_one_look(
    here: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "BATCH", 2)
    for _ in range(5):
        claimed_by(here.incarnation)
    here.close()
    assert look() == 5


def enrolled(name: str, is_stopping: Callable[[], bool]) -> Any:
    own = Registration(
        name=name,
        host=socket.gethostname()[:255],
        pid=os.getpid(),
        queues={},
        concurrency=1,
        pool="process",
        versions={},
        lease_seconds=60.0,
    )
    return enrol(own, is_stopping=is_stopping)


@pytest.mark.django_db(transaction=True)
def test_a_name_is_left_to_its_worker_until_its_last_process_has_ended(here: Presence) -> None:
    """Taken earlier, it would no longer tell whose the leases are."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    claimed = claimed_by(
        here.incarnation, host=socket.gethostname()[:255], pid=ended.pid, seen_at=future()
    )
    assert here.fileno is not None
    childs = os.dup(here.fileno)
    here.close()
    looks: list[str] = []

    def is_stopping() -> bool:
        looks.append(Worker.objects.get().status)
        if len(looks) == 3:
            os.close(childs)
        return False

    assert enrolled("w1", is_stopping) is not None
    assert looks[:3] == ["running"] * 3
    assert Worker.objects.get().pid == os.getpid()
    lease = lease_of(claimed)
    assert (lease.status, lease.error_message) == ("lost", ENDED_ON_HOST)
    assert here.incarnation not in presence.others()


@pytest.mark.django_db(transaction=True)
def test_a_worker_takes_its_name_where_it_may_not_look_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: object) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(presence.os, "listdir", refuse)
    assert enrolled("w1", lambda: False) is not None
    # Under a name that is known it looks first for what the name has left.
    Worker.objects.update(status="stopped")
    assert enrolled("w1", lambda: False) is not None


def kill_at_work(start_worker: StartWorker, tmp_path: Path, *flags: str) -> tuple[Any, Any]:
    """A worker that is killed while it runs a task on a lease of a day, and the task."""
    result = tasks.append_and_wait.using(lease_duration=DAY, crash_delay=0).enqueue(
        str(tmp_path / "effects"), str(tmp_path / "go")
    )
    worker = start_worker(*flags)
    wait_until((tmp_path / "effects").exists, 60, what="the start of the body")
    return worker, result


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("flags", [(), ("--name", "steady")], ids=["new name", "same name"])
def test_a_new_worker_takes_the_task_of_one_that_was_killed_with_a_lease_of_a_day(
    start_worker: StartWorker, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    worker, result = kill_at_work(start_worker, tmp_path, *flags)
    worker.kill()
    worker.wait()
    (tmp_path / "go").touch()
    start_worker(*flags)
    wait_until(Task.objects.filter(id=result.id, status="succeeded").exists, 120, what="its end")
    first, second = Lease.objects.filter(task_id=result.id).order_by("attempt")
    assert (first.status, first.error_message) == ("lost", ENDED_ON_HOST)
    assert first.expires_at > second.claimed_at + timedelta(hours=12)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_children_hold_the_file_of_their_worker_until_they_have_ended(
    start_worker: StartWorker, tmp_path: Path, pool: str
) -> None:
    worker, _ = kill_at_work(start_worker, tmp_path, "--pool", pool)
    (child,) = children_of(worker.pid)
    incarnation = Worker.objects.get().incarnation
    own = f"{presence.PREFIX}{incarnation.hex}"
    assert [Path(file.path).name for file in child.open_files()].count(own) == 1
    assert own not in {Path(file.path).name for file in guardian_of(worker.pid).open_files()}
    worker.kill()
    worker.wait()
    wait_until(lambda: not child.is_running(), 60, what="the child's end")
    with presence.proof_of_end(incarnation) as proof:
        assert proof is not None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_ends_well_leaves_no_file(start_worker: StartWorker) -> None:
    worker = start_worker()
    incarnation = Worker.objects.get().incarnation
    assert incarnation in presence.others()
    worker.terminate()
    assert worker.wait() == 0
    assert incarnation not in presence.others()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_task_of_a_lost_worker_on_another_host_waits_for_a_person(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker, result = kill_at_work(start_worker, tmp_path)
    incarnation = Worker.objects.get().incarnation
    worker.kill()
    worker.wait()
    presence.forget(incarnation)  # As if its host were another.
    Worker.objects.update(host="elsewhere")
    lose(Worker.objects.get().name)
    start_worker()
    noop.enqueue()
    wait_until(Task.objects.filter(name=noop.name, status="succeeded").exists, 60)
    assert Task.objects.get(id=result.id).status == "running"
    assert "worker_lost" in {each.code for each in why(Task.objects.get(id=result.id))}
    assert request_stop(result.id, by="anna") == "cancelled"
