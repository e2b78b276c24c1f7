"""`per_slot`: bodies of one definition run beside each other in a slot, each for itself."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from taskqueue import InvalidTask, task
from taskqueue.models import Lease, Task, TaskLog
from taskqueue.results import TaskResult
from taskqueue.worker.bodies.slots import MainSlot
from taskqueue.worker.frames import WHOLE, Frame
from taskqueue.worker.jobs import Job
from taskqueue.worker.places import Places
from tests.conftest import Drain, StartWorker
from tests.sample import async_tasks, tasks, worker_tasks
from tests.worker.played import a_claim
from tests.worker.reading import ended, leases
from tests.worker_process import wait_until

slow = pytest.mark.slow

LEASE = 4
SHORT = {"PING_INTERVAL": 0.2, "STOP_GRACE": 0.4, "KILL_GRACE": 0.5}


def start_side_by_side(journal: Path, count: int, until: Path) -> list[TaskResult[Any]]:
    """Bodies that all run, until there is a file."""
    results = [async_tasks.work_in_slot.enqueue(str(journal), str(until)) for _ in range(count)]
    await_starts(journal, count)
    return results


def await_starts(journal: Path, count: int) -> None:
    wait_until(
        lambda: journal.exists() and journal.read_text().count("start") >= count,
        60,
        what="running bodies",
    )


def states(results: list[TaskResult[Any]]) -> set[tuple[str, int]]:
    for result in results:
        result.wait(60)
    return {(result.status, result.attempts) for result in results}


def test_only_async_bodies_may_share_a_slot() -> None:
    with pytest.raises(InvalidTask, match=r"per_slot=2 is for `async def` bodies, and"):

        @task(name="shares", per_slot=2)
        def share() -> None:
            """It would need a thread."""


@slow
def test_as_many_bodies_as_the_definition_allows_run_at_once_in_a_slot(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    paths = [str(tmp_path / f"body-{number}") for number in range(20)]
    results = [async_tasks.meet_in_slot.enqueue(path, paths) for path in paths]

    start_worker("--concurrency", "1")

    assert states(results) == {("succeeded", 1)}
    assert len({result.return_value for result in results}) == 1


@slow
def test_no_more_bodies_than_allowed_share_a_slot(drain: Drain, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    for _ in range(50):
        async_tasks.work_in_slot.enqueue(str(journal))

    drain("--concurrency", "1")

    assert 1 < most_at_once(journal) <= 20
    assert Counter(Lease.objects.values_list("status", flat=True)) == {"succeeded": 50}


def most_at_once(journal: Path) -> int:
    running = most = 0
    for line in journal.read_text().splitlines():
        running += 1 if line.endswith("start") else -1
        most = max(most, running)
    return most


def job(lease_id: int, name: str, *, needs_whole_slot: bool = False) -> Any:
    return SimpleNamespace(
        lease_id=lease_id,
        name=name,
        needs_whole_slot=needs_whole_slot,
        started_at=None,
        start=print,
    )


def test_a_slot_that_is_kept_for_a_def_body_stays_closed_to_those_that_share() -> None:
    held = {1: job(1, "shares")}
    places = Places(1, held)
    places.allow({"shares": 50})
    places.add([held[1]], 0.0)
    assert places.free == 49

    places.close_for(job(2, "alone"))
    places.close_for(job(3, "shares"))

    assert places.free == places.startable([job(3, "shares")]) == 0


def test_a_body_whose_call_limits_its_memory_has_its_slot_to_itself() -> None:
    limited = Job(a_claim(1)._replace(name="shares", options='{"max_memory": 500}'), 0.0)
    crashed = Job(a_claim(2)._replace(name="shares", crashes=1), 0.0)
    assert limited.needs_whole_slot
    assert crashed.needs_whole_slot
    assert not Job(a_claim(3)._replace(name="shares"), 0.0).needs_whole_slot

    held = {1: job(1, "shares", needs_whole_slot=True), 2: job(2, "shares")}
    places = Places(1, held)
    places.allow({"shares": 50})

    assert places.add(list(held.values()), 0.0) == {2: WHOLE // 50}
    assert (places.running, places.waiting) == (1, 1)


def test_the_end_of_a_thread_is_reported_while_the_main_thread_is_busy() -> None:
    slot, said = MainSlot(), Queue[Frame]()
    attempt: Any = SimpleNamespace(run=lambda call: ("ended",))
    interruption: Any = None

    slot.begin_in_thread(attempt, WHOLE // 2, interruption, said.put)

    assert said.get(timeout=60) == ("ended",)  # This thread, the main one, has not looked.
    slot.make_room(WHOLE, lambda: True)
    assert slot.load == 0


@slow
def test_a_def_body_has_its_slot_to_itself(drain: Drain, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    shared = [async_tasks.work_in_slot.enqueue(str(journal)) for _ in range(5)]
    alone = worker_tasks.work.enqueue(str(journal), 0.1)
    single = worker_tasks.work_async.enqueue(str(journal), 0.1)
    shared += [async_tasks.work_in_slot.enqueue(str(journal)) for _ in range(5)]

    drain("--concurrency", "1")

    assert states([*shared, alone, single]) == {("succeeded", 1)}
    lines = [line.split() for line in journal.read_text().splitlines()]
    for result in (alone, single):
        own = [number for number, line in enumerate(lines) if line[0] == str(result.id)]
        assert own[1] == own[0] + 1
        before = [line[-1] for line in lines[: own[0]]]
        assert before.count("start") == before.count("end")


@slow
def test_stopping_one_leaves_those_beside_it_alone(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1", settings={**SHORT, "KILL_GRACE": 30})
    first, *others = start_side_by_side(tmp_path / "journal", 5, tmp_path / "go")

    first.cancel("enough", by="ada")

    assert first.wait(60).status == "cancelled"
    (tmp_path / "go").touch()
    assert leases(first) == ["stopped"]
    assert states(others) == {("succeeded", 1)}
    assert (tmp_path / "journal").read_text().count("interrupted") == 1


@slow
def test_the_timeout_of_one_leaves_those_beside_it_alone(drain: Drain, tmp_path: Path) -> None:
    journal, never = str(tmp_path / "journal"), str(tmp_path / "never")
    others = [async_tasks.work_in_slot.enqueue(journal) for _ in range(5)]
    late = async_tasks.work_in_slot.using(timeout=0.3).enqueue(journal, never)
    failing = async_tasks.fail_in_slot.enqueue()

    drain("--concurrency", "1", settings={"KILL_GRACE": 30})

    assert states(others) == {("succeeded", 1)}
    assert ended(late).status == ended(failing).status == "failed"
    assert late.errors[0].exception_class_path == "taskqueue.exceptions.TaskTimeout"
    assert failing.errors[0].message == "failed in its slot"
    assert "taskqueue/worker" not in failing.errors[0].traceback


@slow
def test_each_log_line_and_progress_belongs_to_its_own_attempt(drain: Drain) -> None:
    results = {name: async_tasks.say_in_slot.enqueue(name, 5) for name in "abc"}

    drain("--concurrency", "1")

    for name, result in results.items():
        lines = TaskLog.objects.filter(task_id=result.id).values_list("message", flat=True)
        assert Counter(lines) == {f"{name} {number}": 3 for number in range(5)}
        assert ended(result).progress.message == name


@slow
def test_a_crash_costs_all_that_ran_in_the_slot_and_nothing_that_waited(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    journal, go = tmp_path / "journal", tmp_path / "go"
    crashing = async_tasks.crash_in_slot.enqueue(str(go))
    start_worker("--concurrency", "1", settings={"CLAIM_AHEAD": 10})
    beside = start_side_by_side(journal, 4, tmp_path / "later")
    waiting = tasks.noop.enqueue()
    wait_until(Lease.objects.filter(task_id=waiting.id).exists, 60, what="a claim ahead")

    go.touch()
    wait_until(Lease.objects.filter(status="lost").exists, 60, what="the crash")
    (tmp_path / "later").touch()

    assert states([crashing, *beside]) == {("succeeded", 2)}
    crashes = Task.objects.exclude(id=waiting.id).values_list("crashes", "failures")
    assert set(crashes) == {(1, 0)}
    assert waiting.wait(60).status == "succeeded"
    assert Task.objects.get(id=waiting.id).crashes == 0


@slow
def test_a_body_that_blocks_the_loop_is_killed_with_its_child(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    journal, go = tmp_path / "journal", tmp_path / "go"
    start_worker("--concurrency", "1", settings=SHORT)
    blocking = async_tasks.block_slot.using(timeout=8, max_attempts=1).enqueue(
        str(journal), str(go)
    )
    await_starts(journal, 1)
    beside = async_tasks.work_in_slot.enqueue(str(journal), str(tmp_path / "later"))
    await_starts(journal, 2)

    go.touch()

    assert blocking.wait(60).status == "failed"
    assert blocking.errors[0].exception_class_path == "taskqueue.exceptions.TaskTimeout"
    (tmp_path / "later").touch()
    assert beside.wait(60).status == "succeeded"
    assert leases(beside) == ["lost", "succeeded"]


@slow
def test_a_body_that_swallows_its_stop_is_killed_with_its_child(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    start_worker("--concurrency", "1", settings=SHORT)
    deaf = async_tasks.swallow_in_slot.enqueue(str(journal))
    await_starts(journal, 1)
    beside = async_tasks.work_in_slot.enqueue(str(journal), str(tmp_path / "go"))
    await_starts(journal, 2)

    deaf.cancel("enough", by="ada")

    assert deaf.wait(60).status == "cancelled"
    (tmp_path / "go").touch()
    assert states([beside]) == {("succeeded", 2)}
    assert leases(beside) == ["lost", "succeeded"]


@slow
def test_all_leases_of_a_slot_are_renewed(start_worker: StartWorker, tmp_path: Path) -> None:
    start_worker("--concurrency", "1", settings={"LEASE_DURATION": LEASE, "PING_INTERVAL": 0.5})
    results = start_side_by_side(tmp_path / "journal", 20, tmp_path / "go")
    renewed = max(Lease.objects.values_list("claimed_at", flat=True)) + timedelta(seconds=2 * LEASE)
    wait_until(
        lambda: min(Lease.objects.values_list("expires_at", flat=True)) > renewed,
        60,
        what="several renewals of each",
    )
    (tmp_path / "go").touch()
    assert states(results) == {("succeeded", 1)}


@slow
def test_a_lease_that_ended_elsewhere_ends_its_body_alone(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    start_worker("--concurrency", "1", settings={**SHORT, "KILL_GRACE": 30})
    first, *others = start_side_by_side(journal, 4, tmp_path / "go")

    Lease.objects.filter(task_id=first.id).update(status="lost", finished_at="2026-01-01T00:00Z")

    wait_until(lambda: "interrupted" in journal.read_text(), 60, what="the end of its body")
    (tmp_path / "go").touch()
    assert states(others) == {("succeeded", 1)}


@slow
@pytest.mark.parametrize("signals", [1, 2])
def test_a_shutdown_waits_for_what_shares_a_slot_or_returns_it(
    start_worker: StartWorker, tmp_path: Path, signals: int
) -> None:
    worker = start_worker("--concurrency", "1")
    results = start_side_by_side(tmp_path / "journal", 5, tmp_path / "go")

    for number in range(1, signals + 1):
        worker.terminate()
        if number < signals:  # Two that come at once are one.
            wait_until(lambda: "a second signal" in worker.log(), what="the first signal's effect")
    if signals == 1:
        wait_until(lambda: "Stopping" in worker.log(), what="the signal's effect")
        (tmp_path / "go").touch()
    assert worker.wait(60) == 0

    for result in results:
        result.refresh()
    found = {(result.status, *leases(result)) for result in results}
    assert found == {("succeeded", "succeeded") if signals == 1 else ("ready", "returned")}
    assert set(Task.objects.values_list("crashes", flat=True)) == {0}
