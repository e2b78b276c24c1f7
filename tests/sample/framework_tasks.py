"""Tasks declared with the decorator of Django's own framework."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import django

from taskqueue import Fixed
from tests.sample.models import Effect

if django.VERSION >= (6, 0):
    from django.tasks import TaskContext, signals, task
else:
    from django_tasks import TaskContext, signals, task

TAKES_OPTIONS = django.VERSION[:2] != (6, 0)
"""Whether the stock decorator hands options on: that of Django 6.0 takes none."""
LOGGER = signals.logger.name


@task
def add(a: int, b: int = 1) -> int:
    """A sum."""
    return a + b


@task()
def fail(message: str) -> None:
    """Raises."""
    raise ValueError(message)


@task
async def add_later(a: int, b: int) -> int:
    """A sum, on the event loop."""
    await asyncio.sleep(0)
    return a + b


@task(takes_context=True)
def describe(context: Any, word: str) -> dict[str, Any]:
    """What its context knows."""
    context.progress(1, 2, "half way")
    context.log(f"said {word}")
    context.check()
    result = context.task_result
    return {
        "is_context": isinstance(context, TaskContext),
        "attempt": context.attempt,
        "task_id": context.task_id,
        "worker_name": context.worker_name,
        "metadata": context.metadata,
        "stop_requested": context.stop_requested,
        "result": [result.id, result.status, result.args, result.worker_ids, result.attempts],
        "times": all((result.enqueued_at, result.started_at, result.last_attempted_at)),
        "queue_name": result.task.queue_name,
        "priority": result.task.priority,
    }


@task(takes_context=True)
async def describe_later(context: Any) -> list[Any]:
    """What its context knows, asked for on the event loop."""
    result = context.task_result
    return [isinstance(context, TaskContext), result.args, result.attempts, result.backend]


@task(takes_context=True)
def fail_until(context: Any, attempt: int) -> int:
    """Succeeds at that attempt only."""
    if context.attempt < attempt:
        raise LookupError(f"not yet at {context.attempt}")
    return int(context.attempt)


@task(queue_name="patient", backend="persistent", takes_context=True)
def persist(context: Any, attempt: int) -> int:
    """Has its attempts from the backend's OPTIONS."""
    return int(fail_until.func(context, attempt))


@task(backend="immediate")
def declared_elsewhere(word: str) -> str:
    """Is declared for a backend that is not ours."""
    return word


@task(takes_context=True)
def traced(context: Any, attempt: int) -> int:
    """As `fail_until`; what is said of it leaves marks in the database."""
    return int(fail_until.func(context, attempt))


if TAKES_OPTIONS:

    @task(max_attempts=3, backoff=Fixed(0), metadata={"colour": "red"}, takes_context=True)
    def stubborn(context: Any, attempt: int) -> list[Any]:
        """Has our options from the stock decorator."""
        return [fail_until.func(context, attempt), context.metadata]


def _mark(task_result: Any, note: str) -> None:
    if task_result.task.func is traced.func:
        Effect.objects.create(task_id=task_result.id, attempt=task_result.attempts, note=note)


def _note_start(sender: Any, task_result: Any, **kwargs: Any) -> None:
    _mark(task_result, f"{sender.__name__} started {task_result.status}")


def _note_end(sender: Any, task_result: Any, **kwargs: Any) -> None:
    errors = ", ".join(error.exception_class_path for error in task_result.errors)
    returned = task_result.return_value if task_result.status == "SUCCESSFUL" else None
    _mark(task_result, f"{sender.__name__} finished {task_result.status} {returned} [{errors}]")


signals.task_started.connect(_note_start)
signals.task_finished.connect(_note_end)


class _Marks(logging.Handler):
    """Keeps what Django's framework logs of a traced task.

    It filters its records, so that a worker does not take it for a handler that shows all failures:
    since Django 6.0 both loggers are the same.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.args) and traced.module_path in record.args

    def emit(self, record: logging.LogRecord) -> None:
        Effect.objects.create(task_id=record.args[0], attempt=0, note=record.getMessage())


logging.getLogger(LOGGER).addHandler(_Marks(logging.INFO))
logging.getLogger(LOGGER).setLevel(logging.INFO)  # Django's own is so; the backport's is not.
