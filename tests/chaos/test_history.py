"""A history can be recorded, stored and read again, with either database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction

from taskqueue.models import Lease, Task, TaskLog
from tests.chaos.changes import changes_recorded
from tests.chaos.clients import ClientLog, read_client_log
from tests.chaos.gathering import gather
from tests.chaos.history import Death, Fault, History, Sample, Term
from tests.conftest import Drain
from tests.sample import tasks, worker_tasks


@pytest.fixture
def recorded(transactional_db: None) -> Iterator[None]:
    with changes_recorded():
        yield


@pytest.mark.slow
def test_a_gathered_history_tells_what_clients_database_and_bodies_saw(
    recorded: None, drain: Drain, tmp_path: Path
) -> None:
    journal, log = tmp_path / "journal", ClientLog(tmp_path / "clients")
    log.asked(1, kind="work")
    result = worker_tasks.work.using(metadata={"sequence": 1}).enqueue(str(journal), 0.0)
    log.ok(1, [result.id])
    drain()

    history = gather(client_log=log.path, journals=[journal])

    (enqueue,), (task,), (lease,) = history.enqueues, history.tasks, history.leases
    assert (enqueue.state, enqueue.task_ids) == ("ok", (str(result.id),))
    assert (task.id, task.sequence, task.status) == (str(result.id), 1, "succeeded")
    assert (lease.task_id, lease.attempt, lease.status) == (task.id, 1, "succeeded")
    assert [line.text for line in history.lines] == ["start", "end"]
    steps = [(change.before, change.after) for change in history.changes if change.noun == "task"]
    assert steps == [("", "ready"), ("ready", "running"), ("running", "succeeded")]
    moments = [change.at for change in history.changes]
    assert task.enqueued_at - 1 < moments[0] <= moments[-1] <= history.gathered_at + 0.002
    assert lease.expires_at > lease.claimed_at


@pytest.mark.slow
def test_writes_to_an_ended_lease_are_recorded(recorded: None, drain: Drain) -> None:
    result = tasks.add.enqueue(1)
    drain()
    before = len(gather().changes)

    Lease.objects.update(progress=3.0)
    Lease.objects.update(retry_at=None)
    TaskLog.objects.create(task_id=result.id, attempt=1, logged_at=result.enqueued_at, level=20)
    Task.objects.all().delete()

    late, line, gone, row = gather().changes[before:]
    assert (late.noun, late.before, late.after) == ("lease", "succeeded", "succeeded")
    assert (line.noun, line.attempt) == ("log", 1)
    assert {gone.noun, row.noun} == {"lease", "task"}
    assert (gone.after, row.after) == ("", "")


def test_a_history_is_the_same_after_it_was_saved(recorded: None, tmp_path: Path) -> None:
    log = ClientLog(tmp_path / "clients")
    log.asked(1)
    result = tasks.add.using(unique_key="k", metadata={"sequence": 1}).enqueue(1)
    log.ok(1, [result.id])
    history = gather(
        client_log=log.path,
        terms=[Term("worker", 1.0, None)],
        deaths=[Death("worker", 1.0)],
        faults=[Fault("kill", 1.0, 2.0, ("worker",))],
        samples=[Sample(1.0, {"ready": 1}, 1, 0)],
    )
    history.save(tmp_path / "history.json")
    assert History.load(tmp_path / "history.json") == history


def test_an_enqueue_without_an_answer_stays_asked(tmp_path: Path) -> None:
    log = ClientLog(tmp_path / "clients")
    log.asked(1)
    log.asked(2)
    log.unknown(2)
    log.asked(3)
    log.failed(3)
    with log.path.open("a") as file:
        file.write('{"sequence": 1, "sta')
    states = [enqueue.state for enqueue in read_client_log(log.path)]
    assert states == ["asked", "unknown", "failed"]


def test_two_enqueues_cannot_share_a_sequence(tmp_path: Path) -> None:
    log = ClientLog(tmp_path / "clients")
    log.asked(1)
    log.asked(1)
    with pytest.raises(ValueError, match="sequence 1"):
        read_client_log(log.path)


def test_a_rolled_back_change_is_not_recorded(recorded: None) -> None:
    with transaction.atomic():
        tasks.add.enqueue(1)
        transaction.set_rollback(True)
    assert gather().changes == ()
    assert not connection.in_atomic_block
