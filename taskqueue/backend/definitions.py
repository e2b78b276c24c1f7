"""Definitions of tasks of Django's framework, for workers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.utils import timezone

from taskqueue.backend.framework import (
    AnyContext,
    AnyResult,
    AnyTask,
    TaskResultStatus,
    signals,
    task_backends,
)
from taskqueue.backend.tasks import QueueTask, make_lazy, values_of
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import class_path
from taskqueue.declarations.body_checks import check_body
from taskqueue.declarations.context import AttemptContext
from taskqueue.declarations.defaults import defaults_for
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.options import Options, check_options
from taskqueue.exceptions import Cancel, Stopped

logger = logging.getLogger("taskqueue.worker")
_is_announcing: ContextVar[bool] = ContextVar("taskqueue_is_announcing", default=False)
# The name of Django's receiver that logs.
RECEIVER = "log_task_finished"

OF_THE_TASK = frozenset({"priority", "queue_name", "run_after"})
OF_THE_RESULT = frozenset(
    {"enqueued_at", "started_at", "last_attempted_at", "args", "kwargs", "errors", "worker_ids"}
)
# Django's status of a task after its last attempt; after other outcomes it runs again.
ENDS = {
    OutcomeKind.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    OutcomeKind.FAILED: TaskResultStatus.FAILED,
    OutcomeKind.CANCELLED: TaskResultStatus.FAILED,
    OutcomeKind.STOPPED: TaskResultStatus.FAILED,
}
# The errors of attempts that were stopped, which raised none themselves.
STOPS = {OutcomeKind.CANCELLED: class_path(Cancel), OutcomeKind.STOPPED: class_path(Stopped)}


class TaskDefinition(BaseDefinition[Any, Any]):
    """A definition whose body is a task of Django's framework."""

    # Other backends of the framework only know JSON, so a body receives the same from all of them.
    has_typed_arguments = False
    task: AnyTask

    @classmethod
    def of(cls, task: AnyTask, defaults: Mapping[str, Any]) -> TaskDefinition:
        """Return the definition of a task. Raises `InvalidTask`."""
        name = f"{task.func.__module__}.{task.func.__qualname__}"
        own = task.options if isinstance(task, QueueTask) else {}
        options = {**defaults_for(name), **defaults, **own}
        options |= check_options(
            {
                "queue_name": task.queue_name,
                "priority": int(task.priority),
                "takes_context": task.takes_context,
            },
            declared=True,
        )
        options |= check_options({"run_after": task.run_after}, declared=False)
        definition = cls(task.func, Options(**options))
        definition.task = task
        check_body(definition)
        return definition

    def __init__(self, body: Any, options: Options) -> None:
        super().__init__(body, options)
        self._running: WeakKeyDictionary[AttemptContext, AnyResult] = WeakKeyDictionary()

    def using(self, **options: Any) -> TaskDefinition:
        """Return a copy of the definition with other options. Raises `InvalidTask`."""
        definition = super().using(**options)
        assert isinstance(definition, TaskDefinition)
        definition.task = self.task
        return definition

    def context_for(self, context: AttemptContext) -> QueueContext:
        """Return Django's context, with the methods of ours."""
        return QueueContext(context, lambda: self.result_in(context))

    def result_in(self, context: AttemptContext) -> AnyResult:
        """Return the result of the running task, the same one throughout the attempt."""
        result = self._running.get(context)
        if result is None:
            result = self._running[context] = _running_result(self.task, context)
        return result

    def announce_start(self, context: AttemptContext) -> None:
        """Send Django's `task_started`. Never raises."""
        try:
            result = self.result_in(context)
            signals.task_started.send_robust(self._sender, task_result=result)
        except Exception:
            logger.exception("Signal not sent task=%s id=%s", self.name, context.task_id)

    def announce_end(
        self, context: AttemptContext, outcome: Outcome, *, may_be_retried: bool
    ) -> None:
        """Send Django's `task_finished` for this attempt. Never raises.

        If the task runs again, its status is READY.
        """
        try:
            result = self.result_in(context)
            _end(result, outcome, may_be_retried=may_be_retried)
            with announcing():
                signals.task_finished.send_robust(self._sender, task_result=result)
        except Exception:
            logger.exception("Signal not sent task=%s id=%s", self.name, context.task_id)

    @property
    def _sender(self) -> type:
        return type(task_backends[self.task.backend])


def _running_result(task: AnyTask, context: AttemptContext) -> AnyResult:
    from taskqueue.backend.results import QueueResult, read_rows, result_values

    @cache
    def read() -> dict[str, Any]:
        task_id = UUID(context.task_id)
        return result_values(read_rows([task_id])[task_id], task, backend=task.backend)

    known: dict[str, Any] = {
        "id": context.task_id,
        "status": TaskResultStatus.RUNNING,
        "finished_at": None,
        "backend": task.backend,
        "_return_value": None,
    }
    if isinstance(task, QueueTask):
        of_any = {name: value for name, value in values_of(task).items() if name not in OF_THE_TASK}
        known["task"] = make_lazy(
            type(task), of_any, OF_THE_TASK, lambda: values_of(read()["task"])
        )
    else:
        known["task"] = read()["task"]
    if context.attempt == 1:
        known |= {"errors": [], "worker_ids": [context.worker_name]}
    return make_lazy(QueueResult, known, OF_THE_RESULT, read)


def _end(result: AnyResult, outcome: Outcome, *, may_be_retried: bool) -> None:
    """Set a result to the outcome of its attempt."""
    from taskqueue.backend.results import error_told

    path = outcome.error_class or STOPS.get(OutcomeKind(outcome.kind), "")
    if path:
        result.errors.append(error_told(path, outcome.error_message, outcome.traceback))
    status = ENDS.get(OutcomeKind(outcome.kind), TaskResultStatus.READY)
    if may_be_retried:
        status = TaskResultStatus.READY
    changes: dict[str, Any] = {"status": status}
    if status != TaskResultStatus.READY:
        changes["finished_at"] = timezone.now()
    if outcome.return_value is not None:
        changes["_return_value"] = json.loads(outcome.return_value)
    for name, value in changes.items():
        object.__setattr__(result, name, value)


@contextmanager
def announcing() -> Iterator[None]:
    """Let Django log the signal of an attempt's end at INFO, without the exception.

    Its receiver of `task_finished` logs failures at ERROR, also for cancelled tasks. The worker has
    already logged the failure, as for tasks of all kinds.
    """
    token = _is_announcing.set(True)
    try:
        yield
    finally:
        _is_announcing.reset(token)


def _demote(record: logging.LogRecord) -> bool:
    if not _is_announcing.get() or record.funcName != RECEIVER:
        return True
    record.exc_info = record.exc_text = None
    if record.levelno > logging.INFO:
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return logging.getLogger(record.name).isEnabledFor(record.levelno)


signals.logger.addFilter(_demote)


class QueueContext(AnyContext):
    """Django's `TaskContext` with the methods of `taskqueue.Context`."""

    def __init__(self, context: AttemptContext, result: Callable[[], AnyResult]) -> None:
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "_result", result)

    _context: AttemptContext
    _result: Callable[[], AnyResult]

    def __repr__(self) -> str:
        return f"<context of attempt {self.attempt} of {self.task_id}>"

    @property
    def task_result(self) -> AnyResult:  # type: ignore[override]
        """The result of the running task; fields of the database are read when needed."""
        return self._result()

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._context.attempt

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of `taskqueue.Context`, such as `progress` or `stop_requested`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._context, name)
