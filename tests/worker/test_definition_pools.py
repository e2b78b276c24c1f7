"""`pool=` of a definition: threads in a slot of the process pool, or no thread at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskqueue import InvalidTask, task
from taskqueue.declarations.serving import parse_definition_slots
from taskqueue.models import Task, Worker
from taskqueue.monitoring.why import why
from tests.conftest import StartWorker
from tests.sample.models import Effect
from tests.sample.worker_tasks import meet_in_threads, run_in_process
from tests.worker_process import wait_until


def _body() -> None: ...


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pool": "process", "per_slot": 2}, "leave out per_slot"),
        ({"pool": "thread", "per_slot": 2, "atomic": True}, "exclude each other"),
        ({"pool": "thread"}, "needs per_slot"),
        ({"pool": "thread", "per_slot": 1}, "needs per_slot"),
        ({"pool": "thread", "per_slot": 2, "max_memory": 500}, "exclude each other"),
    ],
)
def test_options_that_a_pool_excludes_are_refused(options: Any, said: str) -> None:
    with pytest.raises(InvalidTask, match=said):
        task(name="tests.pools", **options)(_body)


def test_a_definition_may_have_no_slots_of_a_worker() -> None:
    assert parse_definition_slots("shop.export=0,shop.resize=2") == {
        "shop.export": 0,
        "shop.resize": 2,
    }


@pytest.mark.slow
def test_def_bodies_share_a_slot_in_threads_and_one_that_is_late_ends_alone(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1", settings={"KILL_GRACE": 30})
    late = meet_in_threads.using(timeout=0.5).enqueue(str(tmp_path / "late"), [])
    paths = [str(tmp_path / f"body-{number}") for number in range(4)]
    results = [meet_in_threads.enqueue(path, paths) for path in paths]

    ended = [result.wait(60) for result in results]

    assert {(result.status, result.attempts) for result in ended} == {("succeeded", 1)}
    assert len({result.return_value for result in ended}) == 1
    assert Effect.objects.count() == 4
    assert late.wait(60).status == "failed"
    assert late.errors[0].exception_class_path == "taskqueue.exceptions.TaskTimeout"


@pytest.mark.slow
def test_a_worker_of_threads_leaves_a_body_that_wants_a_process_to_others(
    start_worker: StartWorker,
) -> None:
    result = run_in_process.enqueue()
    start_worker("--pool", "thread", "--concurrency", "2")
    zero = {run_in_process.name: 0}
    wait_until(lambda: Worker.objects.filter(definition_slots=zero).exists(), 60, what="its row")

    [reason, *_] = [each.code for each in why(Task.objects.get(id=result.id))]
    assert reason == "no_own_slots"
    start_worker("--concurrency", "1")

    assert result.wait(60).return_value == "MainThread"
    assert result.attempts == 1
