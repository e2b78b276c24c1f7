"""What the worker that a test plays logs, and keeps of what bodies log."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import Any

import pytest
from sentry_sdk.utils import event_from_exception

from taskqueue import Fixed, current
from taskqueue.models import Task, TaskLog
from taskqueue.results import get_result
from taskqueue.testing import Crash, run_due, travelling
from tests.sample import framework_tasks, tasks, worker_tasks
from tests.sample.rest_tasks import sign_in
from tests.testing.bodies import perform, play

pytestmark = pytest.mark.django_db

KINDS = [tasks.fail, framework_tasks.fail]


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, bool]]:
    """The records of failures: their levels, loggers, and whether they hold the exception."""
    return [
        (record.levelname, record.name, record.exc_info is not None)
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]


@pytest.mark.parametrize("failing", KINDS, ids=["native", "framework"])
def test_a_failure_is_one_error_with_its_exception(
    failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = failing.enqueue("top secret argument")

    run_due()

    assert told(caplog) == [("ERROR", "django.tasks", True)]
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.msg == "Task failed task=%s id=%s attempt=%s queue=%s"
    fields = record.__dict__
    assert (fields["task_id"], fields["attempt"], fields["queue_name"]) == (
        str(result.id), 1, "default",
    )  # fmt: skip
    assert fields["task_name"] == record.args[0]  # type: ignore[index]
    assert "secret" not in record.getMessage()
    assert record.exc_info is not None
    traceback = record.exc_info[2]
    assert traceback is not None
    # It begins at the body: frames of ours would show the arguments.
    assert traceback.tb_frame.f_code.co_name == "fail"


def reported(caplog: pytest.LogCaptureFixture) -> list[tuple[str, list[str]]]:
    """The exceptions that Sentry sends of the one failure, with the functions of each.

    None of the functions is one of taskqueue, whose variables would show the arguments.
    """
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    event, _ = event_from_exception(record.exc_info)
    frames = {
        each["type"]: each.get("stacktrace", {"frames": []})["frames"]
        for each in event["exception"]["values"]
    }
    modules = {each["module"].partition(".")[0] for frame in frames.values() for each in frame}
    assert "taskqueue" not in modules
    return [(name, [each["function"] for each in frame]) for name, frame in frames.items()]


def test_a_report_has_no_arguments_that_no_longer_fit(caplog: pytest.LogCaptureFixture) -> None:
    result = sign_in.enqueue("ann", "hunter2")
    Task.objects.filter(id=result.id).update(args=["ann", "hunter2", "more"])

    [run] = run_due()

    assert reported(caplog) == [("ArgumentsDoNotBind", [])]
    assert run.error is not None
    assert run.error.__context__ is None


def test_a_report_has_no_result_that_cannot_be_stored(caplog: pytest.LogCaptureFixture) -> None:
    play["x"] = lambda: {"password": "hunter2", "else": {1, 2}}
    perform.enqueue("x")

    run_due()

    assert reported(caplog) == [("UnsupportedType", [])]


def test_the_traceback_of_a_cause_begins_at_the_body_too(caplog: pytest.LogCaptureFixture) -> None:
    def fail_late() -> None:
        journey.enter_context(travelling(60))
        raise ValueError("too late anyway")

    play["x"] = fail_late
    perform.using(timeout=30, max_attempts=1).enqueue("x")

    with ExitStack() as journey:
        run_due()

    assert reported(caplog) == [("ValueError", ["perform", "fail_late"]), ("TaskTimeout", [])]


@pytest.mark.skipif(not framework_tasks.TAKES_OPTIONS, reason="this decorator takes no options")
def test_a_failure_that_is_retried_is_a_warning_with_its_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks.fail_until.using(max_attempts=2, backoff=Fixed(0)).enqueue(2)
    framework_tasks.stubborn.enqueue(2)

    run_due()

    assert told(caplog) == [("WARNING", "django.tasks", True)] * 2


def test_outcomes_that_are_no_failures_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks.retry_later.enqueue(1)
    tasks.snooze.enqueue(1)
    tasks.cancel_itself.enqueue()

    run_due()

    assert told(caplog) == []


def test_an_error_of_a_stopped_body_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail_once_stopped() -> None:
        get_result(current().task_id).request_stop("enough", by="ada")
        assert current().stop_requested
        raise ValueError("half done")

    play["x"] = fail_once_stopped
    perform.enqueue("x")

    assert [run.status for run in run_due()] == ["cancelled"]
    assert told(caplog) == []


def test_a_crash_is_a_warning_and_an_error_where_it_fails_its_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def crash() -> None:
        raise Crash

    play["x"] = crash
    perform.using(max_crashes=2, crash_delay=0).enqueue("x")

    run_due()

    assert told(caplog) == [
        ("WARNING", "django.tasks", False), ("ERROR", "django.tasks", False),
    ]  # fmt: skip


def test_a_handler_that_raises_changes_no_outcome() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("no disk")

    handler = Broken()
    result = tasks.fail.enqueue()
    logging.getLogger("django.tasks").addHandler(handler)
    try:
        run_due()
    finally:
        logging.getLogger("django.tasks").removeHandler(handler)

    result.refresh()
    assert (result.status, result.errors[0].message) == ("failed", "it failed")


def test_records_of_bodies_are_kept_and_handlers_get_what_they_would_get() -> None:
    got: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            got.append(record.levelname)

    handler, root = Handler(), logging.getLogger()
    result = worker_tasks.say.enqueue("shop", "DEBUG", "INFO", "WARNING")
    root.addHandler(handler)
    try:
        run_due()
        logging.getLogger("shop").info("outside of a body")
    finally:
        root.removeHandler(handler)

    levels = TaskLog.objects.filter(task_id=result.id).order_by("id").values_list("level")
    assert list(levels) == [(20,), (30,)]
    assert got == ["WARNING"]
    assert root.level == logging.WARNING
