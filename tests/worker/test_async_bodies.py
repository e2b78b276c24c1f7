"""`async def` bodies: one loop for all of a child, on which they disturb nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Drain, StartWorker
from tests.sample import async_tasks, tasks
from tests.sample.models import Effect
from tests.worker.reading import ended, leases
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SHORT_GRACES = {"STOP_GRACE": 0.3, "KILL_GRACE": 0.5}


def test_all_bodies_of_a_child_share_one_loop(drain: Drain, pool: str) -> None:
    # `def` bodies between them, during which the loop of a process stands still.
    results = []
    for _ in range(3):
        results.append(async_tasks.loop_of.enqueue())
        tasks.noop.enqueue()

    drain("--pool", pool, "--concurrency", "1")

    assert len({tuple(ended(result).return_value) for result in results}) == 1


def test_bodies_run_in_the_main_thread_of_a_process(drain: Drain) -> None:
    result = async_tasks.loop_of.enqueue()
    drain("--concurrency", "1")
    process, thread, _ = ended(result).return_value
    assert thread == process


def test_a_coroutine_left_on_the_loop_continues_while_its_slot_is_idle(
    start_worker: StartWorker, tmp_path: Path, pool: str
) -> None:
    journal, until = tmp_path / "journal", tmp_path / "until"
    start_worker("--pool", pool, "--concurrency", "1")
    result = async_tasks.leave_behind.enqueue(str(journal), str(until))
    assert result.wait(60).status == "succeeded"

    until.touch()

    wait_until(lambda: "went on" in journal.read_text(), what="the end of what was left")
    assert tasks.noop.enqueue().wait(60).status == "succeeded"


def test_a_system_exit_behind_a_body_ends_neither_body_nor_child(drain: Drain, pool: str) -> None:
    results = [async_tasks.end_program_behind.enqueue() for _ in range(2)]

    drain("--pool", pool, "--concurrency", "1")

    assert [ended(result).return_value for result in results] == ["went on"] * 2


def test_a_transaction_left_open_from_the_loop_is_rolled_back(drain: Drain, pool: str) -> None:
    left = async_tasks.leave_transaction_open_async.enqueue()
    after = async_tasks.mark_async.using(priority=-1).enqueue("after")

    drain("--pool", pool, "--concurrency", "1")

    assert (ended(left).status, ended(after).status) == ("succeeded", "succeeded")
    assert list(Effect.objects.values_list("note", flat=True)) == ["after"]


def test_a_body_that_blocks_the_loop_is_killed_with_its_child(drain: Drain, tmp_path: Path) -> None:
    result = async_tasks.block_loop.enqueue(str(tmp_path / "journal"))
    after = async_tasks.loop_of.using(priority=-1).enqueue()

    drain("--concurrency", "1", settings=SHORT_GRACES)

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == "taskqueue.exceptions.TaskTimeout"
    assert ended(after).status == "succeeded"
    assert leases(after) == ["succeeded"]


def test_a_body_that_cancels_itself_fails(drain: Drain, pool: str) -> None:
    result, after = async_tasks.cancel_own_task.enqueue(), async_tasks.loop_of.enqueue()

    drain("--pool", pool, "--concurrency", "1")

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path.endswith("CancelledError")
    assert ended(after).status == "succeeded"
