"""Limits of time and memory, as the body meets them."""

from __future__ import annotations

import pytest

from taskqueue import DeadlineExceeded, Stopped, TaskTimeout
from taskqueue.declarations.context import AttemptContext
from tests.conftest import StartWorker
from tests.sample.limit_tasks import check_after_limit


def a_context() -> AttemptContext:
    return AttemptContext(
        task_id="1",
        attempt=1,
        worker_name="w",
        metadata={},
        _lease_id=1,
        _report_progress=lambda *report: None,
        _report_line=lambda *line: None,
    )


def test_check_raises_the_error_of_a_limit_that_is_passed() -> None:
    context = a_context()
    context.check()

    context._announce_limit(DeadlineExceeded("too late"))

    assert context.stop_requested
    with pytest.raises(DeadlineExceeded, match="too late"):
        context.check()


@pytest.mark.parametrize("is_asked_first", [False, True])
def test_check_raises_stopped_where_somebody_asked_for_that_besides(
    *, is_asked_first: bool
) -> None:
    context = a_context()
    if is_asked_first:
        context._request_stop("enough")
    context._announce_limit(TaskTimeout("too long"))
    context._request_stop("enough")

    with pytest.raises(Stopped, match="enough"):
        context.check()


@pytest.mark.slow
def test_a_body_that_catches_its_time_limit_and_checks_fails_and_is_retried(
    start_worker: StartWorker, pool: str
) -> None:
    start_worker("--pool", pool, "--concurrency", "1")

    result = check_after_limit.enqueue().wait(60)

    assert (result.status, result.attempts) == ("succeeded", 2)
    [error] = result.errors
    assert error.exception_class_path == "taskqueue.exceptions.TaskTimeout"
