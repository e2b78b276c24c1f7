"""Tasks of Django's own framework run on our tables and workers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.core import checks
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

import taskqueue
from taskqueue import models, results
from taskqueue.backend.framework import (
    InvalidTask,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    signals,
    task_backends,
)
from taskqueue.backend.results import STATUSES
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from tests.conftest import Drain, StartWorker
from tests.engine.steps import claim, end
from tests.sample import framework_tasks as tasks
from tests.sample.models import Effect
from tests.worker_process import ROOT, wait_until

Work = Callable[..., None]

BACKEND = "taskqueue.backend.TaskQueueBackend"
pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def told(signal: Any) -> Iterator[list[tuple[type, TaskResult]]]:
    """What a signal says meanwhile."""
    heard: list[tuple[type, TaskResult]] = []

    def receiver(sender: type, task_result: TaskResult, **kwargs: Any) -> None:
        heard.append((sender, task_result))

    signal.connect(receiver)
    try:
        yield heard
    finally:
        signal.disconnect(receiver)


@pytest.fixture
def work(start_worker: StartWorker) -> Work:
    """Run a worker until these results have finished: `work(result, arguments=("--pool", ...))`."""

    def run(*waiting: TaskResult, arguments: tuple[str, ...] = ()) -> None:
        start_worker("--poll-interval", "0.05", *arguments)

        def have_finished() -> bool:
            for result in waiting:
                result.refresh()
            return all(result.is_finished for result in waiting)

        wait_until(have_finished, 120, what="all results have finished")

    return run


# What it is.


def test_the_backend_is_capable_of_everything() -> None:
    backend = task_backends["default"]
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_the_checks_find_nothing_wrong_with_it() -> None:
    assert list(task_backends["default"].check()) == []
    assert checks.run_checks() == []


def test_every_status_of_ours_has_one_of_djangos() -> None:
    assert STATUSES.keys() == set(TaskStatus)
    waiting = {status for status, theirs in STATUSES.items() if theirs == TaskResultStatus.READY}
    assert waiting == {"blocked", "scheduled", "ready", "retrying"}
    assert STATUSES["running"] == TaskResultStatus.RUNNING
    assert STATUSES["succeeded"] == TaskResultStatus.SUCCESSFUL
    assert STATUSES["failed"] == STATUSES["cancelled"] == TaskResultStatus.FAILED


# From enqueue to result.


@pytest.mark.slow
def test_a_task_runs_on_a_worker_and_its_result_is_read_through_djangos_api(drain: Drain) -> None:
    result = tasks.add.enqueue(1, b=2)
    assert isinstance(result.id, str)
    assert (result.status, result.attempts, result.backend) == (
        TaskResultStatus.READY,
        0,
        "default",
    )
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert result == tasks.add.get_result(result.id)
    assert result.task == tasks.add

    drain()

    assert result.status == TaskResultStatus.READY
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == 3
    assert (result.args, result.kwargs, result.errors) == ([1], {"b": 2}, [])
    assert result.attempts == len(result.worker_ids) == 1
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert result == tasks.add.get_result(result.id)


@pytest.mark.slow
def test_a_failure_is_kept_with_its_class_and_traceback(drain: Drain) -> None:
    result = tasks.fail.enqueue("no such luck")
    drain()
    result = tasks.fail.get_result(result.id)
    assert result.status == TaskResultStatus.FAILED
    [error] = result.errors
    assert error.exception_class is ValueError
    assert error.exception_class_path == "builtins.ValueError"
    assert "no such luck" in error.traceback
    assert "framework_tasks.py" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["process", "thread"])
def test_async_tasks_run_in_either_pool(drain: Drain, pool: str) -> None:
    result = async_to_sync(tasks.add_later.aenqueue)(2, 3)
    described = tasks.describe_later.enqueue()
    drain("--pool", pool)
    async_to_sync(result.arefresh)()
    assert result.return_value == 5
    described.refresh()
    assert described.return_value == [True, [], 1, "default"]


def test_a_running_task_is_running_for_django_too() -> None:
    result = tasks.add.enqueue(1)
    claimed_at = datetime(2026, 1, 1, tzinfo=UTC)
    models.Task.objects.filter(id=result.id).update(status="running", attempt=1)
    models.Lease.objects.create(
        task_id=result.id,
        worker_id="one",
        attempt=1,
        claimed_at=claimed_at,
        expires_at=claimed_at,
    )
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    assert not result.is_finished
    assert result.worker_ids == ["one"]
    assert result.started_at == result.last_attempted_at == claimed_at


def test_a_cancelled_task_has_failed_for_django() -> None:
    result = tasks.add.enqueue(1)
    results.get_result(result.id).cancel()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.finished_at is not None


def test_a_task_that_was_cancelled_or_stopped_says_why() -> None:
    waiting = tasks.add.enqueue(1)
    results.get_result(waiting.id).cancel("a mistake", by="ann")
    stopped, itself = tasks.add.enqueue(1), tasks.add.enqueue(1)
    for result, kind, reason in (
        (stopped, OutcomeKind.STOPPED, "too long"),
        (itself, OutcomeKind.CANCELLED, "nothing to do"),
    ):
        (claimed,) = claim(1)
        assert claimed.task_id == result.id
        if kind is OutcomeKind.STOPPED:
            results.get_result(result.id).cancel(reason)
        end(claimed, kind, error_message=reason)
    for result, name, reason in (
        (waiting, "Cancel", "a mistake"),
        (stopped, "Stopped", "too long"),
        (itself, "Cancel", "nothing to do"),
    ):
        result.refresh()
        (error,) = result.errors
        assert error.exception_class is getattr(taskqueue, name)
        assert error.traceback == f"taskqueue.exceptions.{name}: {reason}\n"


@pytest.mark.parametrize("unknown", [str(UUID(int=1)), "123", "", None, "é" * 300, "\x00"])
def test_a_result_that_is_not_there_does_not_exist(unknown: Any) -> None:
    backend = task_backends["default"]
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(unknown)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(tasks.add.aget_result)(unknown)


def test_a_task_that_is_not_djangos_has_no_result_there() -> None:
    from tests.sample.tasks import noop

    with pytest.raises(TaskResultDoesNotExist, match=r"tests\.sample\.tasks\.noop"):
        task_backends["default"].get_result(str(noop.enqueue().id))


def test_a_result_can_be_refreshed_where_an_event_loop_runs() -> None:
    result = tasks.add.enqueue(1)

    async def refresh() -> None:
        result.refresh()

    results.get_result(result.id).cancel()
    asyncio.run(refresh())
    assert result.status == TaskResultStatus.FAILED


def test_enqueue_takes_part_in_the_callers_transaction() -> None:
    def enqueue_and_fail() -> None:
        with transaction.atomic():
            tasks.add.enqueue(1)
            tasks.add.enqueue_many([((2,), {}), ((3,), {})])
            assert models.Task.objects.count() == 3
            raise KeyError

    with pytest.raises(KeyError):
        enqueue_and_fail()
    assert not models.Task.objects.exists()


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        ((datetime.now(UTC),), {}, TypeError, "Unsupported type"),
        (({1},), {}, TypeError, "Unsupported type"),
        ((float("nan"),), {}, ValueError, "JSON does not have"),
        (("\x00",), {}, ValueError, "NUL"),
        ((1, 2, 3), {}, TypeError, "cannot be called with these arguments"),
        ((), {"c": 1}, TypeError, "cannot be called with these arguments"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_anything_is_written(
    args: Any, kwargs: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tasks.add.enqueue(*args, **kwargs)
    assert not models.Task.objects.exists()


def test_many_tasks_are_written_without_a_query_for_each() -> None:
    with CaptureQueriesContext(connection) as few:
        tasks.add.enqueue_many([((1,), {})])
    with CaptureQueriesContext(connection) as many, told(signals.task_enqueued) as heard:
        written = tasks.add.enqueue_many([((n,), {"b": n}) for n in range(100)])
    assert len(many) == len(few)
    assert [result for _, result in heard] == written
    assert [(result.args, result.kwargs) for result in written[:2]] == [
        ([0], {"b": 0}),
        ([1], {"b": 1}),
    ]
    assert written[99] == tasks.add.get_result(written[99].id)
    assert len(async_to_sync(tasks.add.aenqueue_many)([((1,), {})])) == 1


# Time and order.


@pytest.mark.slow
def test_a_deferred_task_waits_for_its_time(drain: Drain) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    later = tasks.add.using(run_after=tomorrow).enqueue(1)
    past = tasks.add.using(run_after=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(1)
    drain()
    later.refresh()
    past.refresh()
    assert (later.status, later.attempts) == (TaskResultStatus.READY, 0)
    assert later == tasks.add.get_result(later.id)
    assert later.task.run_after == tomorrow
    assert past.status == TaskResultStatus.SUCCESSFUL


@pytest.mark.slow
def test_a_task_is_deferred_by_a_duration_too(work: Work) -> None:
    result = tasks.add.using(run_after=timedelta(seconds=0.5)).enqueue(1)
    assert result.task.run_after == result.enqueued_at + timedelta(seconds=0.5)
    assert result == tasks.add.get_result(result.id)
    work(result)
    assert result.return_value == 2
    assert result.started_at >= result.enqueued_at + timedelta(seconds=0.5)


def test_an_hour_is_a_duration_in_seconds_as_well() -> None:
    result = tasks.add.using(run_after=3600).enqueue(1)
    assert result.task.run_after == result.enqueued_at + timedelta(hours=1)


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidTask, match="aware"):
        tasks.add.using(run_after=datetime(2030, 1, 1))


@pytest.mark.slow
def test_higher_priorities_run_first(drain: Drain) -> None:
    for priority in (0, -100, 100, 5):
        tasks.traced.using(priority=priority).enqueue(1)
    drain("--concurrency", "1")
    # What the bodies left, not `started_at`: that is exact to a batch's way to the database.
    started = Effect.objects.filter(note__endswith="started RUNNING").order_by("id")
    ran = [models.Task.objects.get(id=effect.task_id).priority for effect in started]
    assert ran == [100, 5, 0, -100]


# The body's context, and signals.


@pytest.mark.slow
def test_the_context_is_djangos_and_offers_what_ours_does(drain: Drain) -> None:
    task = tasks.describe.using(queue_name="words", priority=3, metadata={"colour": "blue"})
    result = task.enqueue("hello")
    drain()
    result.refresh()
    [worker] = result.worker_ids
    assert result.return_value == {
        "is_context": True,
        "attempt": 1,
        "task_id": result.id,
        "worker_name": worker,
        "metadata": {"colour": "blue"},
        "stop_requested": False,
        "result": [result.id, "RUNNING", ["hello"], [worker], 1],
        "times": True,
        "queue_name": "words",
        "priority": 3,
    }
    assert results.get_result(result.id).progress == (100.0, "half way")
    assert list(models.TaskLog.objects.values_list("message", flat=True)) == ["said hello"]


def test_enqueueing_sends_djangos_signal_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger=tasks.LOGGER)
    with told(signals.task_enqueued) as heard:
        result = tasks.add.enqueue(1)
    assert heard == [(type(task_backends["default"]), result)]
    assert f"Task id={result.id} path={tasks.add.module_path} enqueued" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["process", "thread"])
def test_djangos_signals_and_logs_stand_around_the_body(work: Work, pool: str) -> None:
    task = tasks.traced.using(max_attempts=2, backoff=taskqueue.Fixed(0))
    result = task.enqueue(2)
    failed = task.using(max_attempts=1).enqueue(2)
    work(result, failed, arguments=("--pool", pool))
    lookup = "builtins.LookupError"

    def marks(task_id: str, attempt: int) -> list[str]:
        found = Effect.objects.filter(task_id=task_id, attempt=attempt).order_by("id")
        return list(found.values_list("note", flat=True))

    assert marks(result.id, 1) == [
        "TaskQueueBackend started RUNNING",
        f"TaskQueueBackend finished READY None [{lookup}]",
    ]
    assert marks(result.id, 2) == [
        "TaskQueueBackend started RUNNING",
        f"TaskQueueBackend finished SUCCESSFUL 2 [{lookup}]",
    ]
    assert marks(failed.id, 1)[1:] == [f"TaskQueueBackend finished FAILED None [{lookup}]"]
    said = [note.partition("state=")[2] for note in marks(result.id, 0)]
    assert said == ["RUNNING", "READY", "RUNNING", "SUCCESSFUL"]
    # What the framework says of a task is no line of its body.
    assert not models.TaskLog.objects.exists()


# Our options.


@pytest.mark.slow
@pytest.mark.skipif(not tasks.TAKES_OPTIONS, reason="the decorator of Django 6.0 takes no options")
def test_the_stock_decorator_takes_our_options(work: Work) -> None:
    result = tasks.stubborn.enqueue(3)
    work(result)
    assert result.return_value == [3, {"colour": "red"}]
    assert (result.attempts, len(result.worker_ids)) == (3, 3)
    assert [error.exception_class for error in result.errors] == [LookupError, LookupError]


@pytest.mark.slow
def test_using_takes_our_options(work: Work) -> None:
    task = tasks.fail_until.using(max_attempts=2, backoff=taskqueue.Fixed(0))
    result, too_late = task.enqueue(2), task.enqueue(3)
    work(result, too_late)
    assert (result.return_value, result.attempts) == (2, 2)
    assert result.last_attempted_at > result.started_at
    assert (too_late.status, len(too_late.errors)) == (TaskResultStatus.FAILED, 2)


@pytest.mark.slow
def test_the_backends_options_are_the_defaults_of_its_tasks(work: Work) -> None:
    result, too_late = tasks.persist.enqueue(4), tasks.persist.using(max_attempts=2).enqueue(4)
    work(result, too_late)
    assert (result.return_value, result.backend) == (4, "persistent")
    assert result.task == tasks.persist
    assert too_late.attempts == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_atempts": 2}, "Did you mean 'max_attempts'"),
        ({"max_attempts": 0}, "max_attempts must be"),
        ({"timeout": "soon"}, "timeout"),
        ({"sensitive": ["a"]}, "belongs to the definition"),
        ({"backoff": lambda exception, result: 1}, "belongs to the definition"),
        ({"queue_name": "no such name"}, "queue_name must be"),
        ({"run_after": "tomorrow"}, "run_after"),
        ({"run_after": float("nan")}, "run_after"),
        ({"lease_duration": 2, "ping_interval": 1}, "ping_interval"),
    ],
)
def test_an_option_that_cannot_work_is_refused_where_it_is_given(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=message) as caught:
        tasks.add.using(**options)
    assert isinstance(caught.value, taskqueue.InvalidTask)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_atempts": 2}, "Did you mean 'max_attempts'"),
        ({"max_attempts": 0}, "max_attempts must be"),
        ({"atomic": True}, "def"),
        ({"sensitive": ["c"]}, "no argument 'c'"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(options: dict[str, Any], message: str) -> None:
    task_class = task_backends["default"].task_class
    with pytest.raises(InvalidTask, match=message):
        task_class(func=tasks.add_later.func, **options)
    assert tasks.add_later.enqueue(1, 2).status == TaskResultStatus.READY


def test_a_task_with_options_equals_only_one_with_the_same() -> None:
    assert tasks.add.using(max_attempts=2) == tasks.add.using(max_attempts=2)
    assert tasks.add.using(max_attempts=2) != tasks.add
    assert tasks.add.using(max_attempts=2).using(priority=1).options == {"max_attempts": 2}
    assert len({tasks.add, tasks.add.using(), tasks.add.using(metadata={"a": 1})}) == 2


def test_a_unique_key_leads_to_the_task_that_holds_it() -> None:
    first = tasks.add.using(unique_key="one").enqueue(1)
    with told(signals.task_enqueued) as heard:
        assert tasks.add.using(unique_key="one").enqueue(2).id == first.id
    assert heard == []
    loud = tasks.add.using(unique_key="one", on_duplicate="raise")
    for enqueue in (lambda: loud.enqueue(1), lambda: loud.enqueue_many([((1,), {})])):
        assert holder(enqueue).id == first.id
    again = tasks.add.using(unique_key="one").enqueue_many([((5,), {}), ((6,), {})])
    assert {(result.id, tuple(result.args)) for result in again} == {(first.id, (1,))}


SHARED: dict[str, Any] = {"unique_key": "one", "unique_scope": "both"}


def test_the_holder_of_a_shared_key_is_shown_as_the_task_that_it_is() -> None:
    assert tasks.fail.using(unique_key="one").enqueue("x").id != only_add().id
    met = tasks.fail.using(**SHARED).enqueue("x")
    assert (met.id, met.task.name, met.args) == (only_add().id, "add", [1])
    assert met.task.func is tasks.add.func
    loud = tasks.fail.using(**SHARED, on_duplicate="raise")
    assert holder(lambda: loud.enqueue("x")).task.func is tasks.add.func


def only_add() -> TaskResult:
    return tasks.add.using(**SHARED).enqueue(1)


def test_a_holder_that_is_no_task_of_the_framework_is_not_shown_as_one() -> None:
    from tests.sample.tasks import noop

    native = noop.using(**SHARED).enqueue()
    shared = tasks.add.using(unique_key=("a",), unique_scope="both")
    first = shared.enqueue(5)
    key = models.Task.objects.get(id=first.id).unique_key
    other = noop.using(unique_key=key, unique_scope="both")
    models.Task.objects.filter(id=first.id).delete()
    other.enqueue()
    for enqueue in (
        lambda: tasks.add.using(**SHARED).enqueue(1),
        lambda: tasks.add.using(**SHARED, on_duplicate="raise").enqueue(1),
        lambda: shared.enqueue_many([((4,), {}), ((5,), {})]),
    ):
        with pytest.raises(taskqueue.DuplicateTask) as caught:
            enqueue()
        assert isinstance(caught.value.result, results.TaskResult)
        assert caught.value.result.name == noop.name
    assert native.name == noop.name
    assert set(models.Task.objects.values_list("name", flat=True)) == {noop.name}


@pytest.mark.django_db(transaction=True)
def test_many_are_all_or_none_where_another_definition_holds_a_key_in_this_ones_scope() -> None:
    from tests.sample.tasks import noop

    keyed = tasks.add.using(unique_key=("a",))
    first = models.Task.objects.get(id=keyed.enqueue(5).id)
    first.delete()
    noop.using(unique_key=first.unique_key, unique_scope=first.name).enqueue()
    with pytest.raises(taskqueue.DuplicateTask):
        keyed.enqueue_many([((4,), {}), ((5,), {})])
    assert models.Task.objects.get().name == noop.name


def holder(enqueue: Callable[[], Any]) -> TaskResult:
    with pytest.raises(taskqueue.DuplicateTask) as caught:
        enqueue()
    assert isinstance(caught.value.result, TaskResult)
    return caught.value.result


# Other backends, other projects.


@pytest.mark.slow
def test_a_task_declared_for_another_backend_runs_when_it_is_enqueued_here(drain: Drain) -> None:
    task = tasks.declared_elsewhere.using(backend="default")
    result = task.enqueue("hello")
    assert result.task == task
    drain()
    result.refresh()
    assert result.return_value == "hello"
    assert tasks.declared_elsewhere.enqueue("here").return_value == "here"


def test_nothing_is_imported_because_a_row_names_it() -> None:
    result = tasks.add.enqueue(1)
    for name in ("this.s", "antigravity.fly", "tests.sample.framework_tasks", "os.system", "x"):
        models.Task.objects.filter(id=result.id).update(name=name)
        with pytest.raises(TaskResultDoesNotExist):
            tasks.add.get_result(result.id)
    assert not sys.modules.keys() & {"this", "antigravity"}


def test_queues_are_honoured() -> None:
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid"):
        tasks.persist.using(queue_name="other")
    assert tasks.persist.using(queue_name="default").queue_name == "default"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_atempts": 2}, "Did you mean 'max_attempts'"),
        ({"timeout": "soon"}, "timeout"),
        ({"priority": 1}, "belongs to each task"),
        ({"name": "x"}, "belongs to each task"),
        ({"run_after": 1}, "belongs to each task"),
        ({"retry_for": int}, "retry_for"),
    ],
)
def test_mistakes_in_options_are_found_by_the_checks(options: dict[str, Any], message: str) -> None:
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": options}}):
        [error] = task_backends["default"].check()
    assert error.id == "taskqueue.E010"
    assert message in error.msg


BARE_PROJECT = """
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=[{apps}],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:",
                            "OPTIONS": {{"transaction_mode": "IMMEDIATE"}}}}}},
    TASKS={{"default": {{"BACKEND": "taskqueue.backend.TaskQueueBackend"}}}},
    USE_TZ=True,
)
django.setup()
"""
WITHOUT_ADMIN_AND_REST = """
import sys
from django.core.management import call_command
from taskqueue.backend.framework import task_backends
from tests import bare_task
call_command("check", "--fail-level", "WARNING")
call_command("migrate", verbosity=0)
result = bare_task.double.enqueue(4)
assert bare_task.double.get_result(result.id) == result
assert "rest_framework" not in sys.modules
print("done")
"""
WITHOUT_OUR_APP = """
from taskqueue.backend.framework import task_backends
print([message.id for message in task_backends["default"].check()])
"""


def test_it_needs_neither_the_admin_nor_the_rest_framework() -> None:
    script = BARE_PROJECT.format(apps="'taskqueue'") + WITHOUT_ADMIN_AND_REST
    assert run(script).splitlines()[-1] == "done"


def test_a_project_that_forgot_our_app_is_told_so() -> None:
    assert run(BARE_PROJECT.format(apps="") + WITHOUT_OUR_APP) == "['taskqueue.E011']"


def test_tasks_can_be_declared_before_the_models_are_loaded() -> None:
    script = BARE_PROJECT.format(apps="'taskqueue'").replace(
        "django.setup()", "from tests import bare_task; print(bare_task.double.name)"
    )
    assert run(script) == "double"


def run(script: str) -> str:
    """Run a script in a process of its own, from the root of the checkout."""
    environment = {key: value for key, value in os.environ.items() if "DJANGO" not in key}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.strip()
