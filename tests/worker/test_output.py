"""The output of a worker, and the lines that bodies leave with their attempts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from taskqueue import Fixed
from taskqueue.models import TaskLog
from taskqueue.results import TaskResult
from tests.conftest import Drain
from tests.sample import framework_tasks, tasks, worker_tasks

ROOT_LOGGING = {"DJANGO_SETTINGS_MODULE": "tests.root_logging"}
OWN_LOGGING = {"DJANGO_SETTINGS_MODULE": "tests.own_logging"}
LEVELS = ("DEBUG", "INFO", "WARNING")
ATTEMPT = re.compile(r"Attempt ended task=(\S+) id=(\S+) attempt=(\d+) outcome=(\w+) now=(\w+) ")

pytestmark = pytest.mark.slow


def enqueue_some() -> None:
    """Two that succeed, one of them in its own transaction; one that fails, the second time."""
    tasks.add.enqueue(1)
    tasks.mark_atomically.enqueue()
    tasks.fail.using(max_attempts=2, backoff=Fixed(0)).enqueue()


def attempts_in(log: str) -> list[tuple[str, ...]]:
    found = [ATTEMPT.search(line) for line in log.splitlines()]
    return sorted((m[1].rpartition(".")[2], m[3], m[4], m[5]) for m in found if m)


EACH_ATTEMPT = [
    ("add", "1", "succeeded", "succeeded"),
    ("fail", "1", "failed", "retrying"),
    ("fail", "2", "failed", "failed"),
    ("mark_atomically", "1", "succeeded", "succeeded"),
]


def test_a_worker_says_how_it_begins_what_fails_and_how_it_ends(drain: Drain, pool: str) -> None:
    enqueue_some()

    log = drain("--pool", pool, "--name", "paris", "--queues", "default")

    assert log.count("Worker started name=paris ") == 1
    for part in (f"pool={pool}", "queues=default", "database=default", "version="):
        assert part in log
    assert log.count("Task failed task=tests.sample.tasks.fail") == 1
    assert log.count("Attempt failed, the task is retried task=tests.sample.tasks.fail") == 1
    assert log.count("ValueError: it failed") == 2
    assert "Worker stopped name=paris succeeded=2 failed=1 retried=1 other=0" in log
    assert attempts_in(log) == []


def test_a_line_for_each_attempt_is_written_at_verbosity_2(drain: Drain, pool: str) -> None:
    enqueue_some()
    assert attempts_in(drain("--pool", pool, "-v", "2")) == EACH_ATTEMPT


def test_verbosity_0_writes_warnings_and_errors_alone(drain: Drain) -> None:
    tasks.add.enqueue(1)
    assert drain("-v", "0") == ""
    tasks.fail.enqueue()
    [first, *_] = drain("-v", "0").splitlines()
    assert " ERROR Task failed task=tests.sample.tasks.fail " in first


def test_a_logging_of_the_project_gets_each_line_once(drain: Drain) -> None:
    enqueue_some()

    log = drain("-v", "2", env=OWN_LOGGING)

    ours = [line for line in log.splitlines() if "task=" in line or "Worker " in line]
    assert all(line.startswith("OWN ") for line in ours)
    failed = [line.split()[1:3] for line in ours if "Task failed" in line]
    assert failed == [["ERROR", "django.tasks"]]
    assert sum("Worker started" in line for line in ours) == 1
    # That LOGGING sets a level for "taskqueue", which no flag changes.
    assert attempts_in(log) == []


def test_the_flag_sets_the_level_that_logging_does_not(drain: Drain) -> None:
    tasks.add.enqueue(1)
    log = drain("--name", "paris", env=ROOT_LOGGING)
    assert log.count("OWN INFO taskqueue.worker Worker started name=paris ") == 1
    assert "OWN INFO taskqueue.worker Worker stopped name=paris succeeded=1 " in log
    assert "Attempt ended" not in log
    tasks.add.enqueue(1)
    assert len(attempts_in(drain("-v", "2", env=ROOT_LOGGING))) == 1
    assert drain("-v", "0", env=ROOT_LOGGING) == ""


def test_failures_are_logged_once_where_a_body_gives_the_root_logger_a_handler(
    drain: Drain, pool: str
) -> None:
    for _ in range(2):
        worker_tasks.say_at_root_and_fail.enqueue()
    log = drain("--pool", pool, "--concurrency", "1")
    assert log.count("Task failed task=") == 2
    assert log.count("ValueError: it failed") == 2


def kept(result: TaskResult[Any]) -> list[str]:
    lines = TaskLog.objects.filter(task_id=result.id).order_by("id")
    return [line.message.removeprefix("said at ") for line in lines]


def test_records_of_a_body_are_kept_from_info_on(drain: Drain, pool: str) -> None:
    of_root = worker_tasks.say.enqueue("shop", *LEVELS)
    with_level = worker_tasks.say.enqueue("chatty", *LEVELS, "ERROR")
    below_it = worker_tasks.say.enqueue("chatty.part", "WARNING", "ERROR")
    from_django = worker_tasks.say.enqueue("django.db.backends", "ERROR")
    by_framework = framework_tasks.add.enqueue(1)

    log = drain("--pool", pool, env=OWN_LOGGING)

    assert kept(of_root) == ["INFO", "WARNING"]
    assert kept(with_level) == kept(below_it) == ["ERROR"]
    assert kept(from_django) == []
    assert not TaskLog.objects.filter(task_id=by_framework.id).exists()
    # The project's handler gets what it would have got without us.
    said = [line for line in log.splitlines() if "said at" in line]
    assert sorted(said) == [
        "OWN ERROR chatty said at ERROR",
        "OWN ERROR chatty.part said at ERROR",
        "OWN ERROR django.db.backends said at ERROR",
        "OWN WARNING shop said at WARNING",
    ]


@pytest.mark.parametrize(
    ("level", "expected"), [("DEBUG", list(LEVELS)), ("WARNING", ["WARNING"]), (31, [])]
)
def test_the_level_from_which_records_are_kept_is_a_setting(
    drain: Drain, level: Any, expected: list[str]
) -> None:
    result = worker_tasks.say.enqueue("shop", *LEVELS)

    log = drain(settings={"LOG_LEVEL": level})

    assert kept(result) == expected
    assert [line for line in log.splitlines() if "said at" in line] == ["said at WARNING"]


def test_debug_lines_of_asyncio_are_not_stored(drain: Drain, pool: str) -> None:
    result = tasks.sleep_async.enqueue(0)
    drain("--pool", pool, settings={"LOG_LEVEL": "DEBUG"})
    assert kept(result) == []
