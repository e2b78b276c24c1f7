"""The traces of an attempt: its result, its errors, its log, its progress."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import TaskLog
from tests.conftest import Drain, StartWorker
from tests.sample import tasks
from tests.worker.reading import ended, leases
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("result_task", "arguments", "said"),
    [(tasks.return_set, (), "set"), (tasks.return_size, (2_000_000,), "1,048,576")],
)
def test_a_result_that_cannot_be_stored_fails_the_task_at_once(
    drain: Drain, result_task: Any, arguments: tuple[Any, ...], said: str
) -> None:
    result = result_task.using(max_attempts=5).enqueue(*arguments)

    drain()

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert said in result.errors[0].message


def test_an_exception_that_cannot_be_printed_is_a_failure(drain: Drain) -> None:
    result = tasks.raise_unprintable.enqueue()

    drain()

    assert ended(result).status == "failed"
    assert result.errors[0].exception_class_path == "tests.sample.tasks.Unprintable"
    assert "RuntimeError" in result.errors[0].message


def test_a_huge_error_is_cut_with_a_marker(drain: Drain) -> None:
    result = tasks.raise_long.enqueue(1_000_000)

    drain(settings={"MAX_TRACEBACK": 4096})

    (error,) = ended(result).errors
    assert len(error.message) <= 4096
    assert len(error.traceback) <= 4096
    assert "cut" in error.traceback
    assert "\x00" not in error.message + error.traceback


def test_output_of_a_body_is_stored_with_its_attempt(drain: Drain, pool: str) -> None:
    result = tasks.talk.enqueue(3)

    drain("--pool", pool)

    lines = list(TaskLog.objects.filter(task_id=result.id).order_by("id"))
    assert [line.message[:6] for line in lines[:3]] == ["line 0", "line 1", "line 2"]
    assert (lines[3].message, lines[3].logger) == ("said by a logger", "tests.sample.tasks")
    assert [line.level for line in lines] == [20, 20, 20, 30]
    assert {line.attempt for line in lines} == {1}


def test_a_long_log_is_cut_with_a_marker(drain: Drain) -> None:
    result = tasks.talk.enqueue(1000, 100)

    drain(settings={"MAX_LOG": 5000})

    lines = list(TaskLog.objects.filter(task_id=result.id).order_by("id"))
    assert sum(len(line.message) for line in lines) < 5200
    assert "cut" in lines[-1].message
    assert ended(result).status == "succeeded"


def test_progress_shows_while_the_body_runs(
    start_worker: StartWorker, pool: str, tmp_path: Any
) -> None:
    go = tmp_path / "go"
    result = tasks.report_progress.enqueue(str(go))
    start_worker("--pool", pool)

    wait_until(lambda: result.progress.percent == 25)
    result.refresh()

    assert result.status == "running"
    assert result.progress == (25, "a quarter")
    assert result.progress.detail == {"rows": [1, "ä"]}
    assert result.started_at is not None
    go.touch()
    assert result.wait(60).status == "succeeded"
