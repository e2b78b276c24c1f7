"""The backend of Django's Tasks framework: `django.tasks`, or `django-tasks` on Django 5.2.

    TASKS = {"default": {"BACKEND": "taskqueue.backend.TaskQueueBackend"}}

`QUEUES` names the queues that tasks may use, an empty list any; `OPTIONS` are our options for all
tasks of the backend that do not set them, such as `{"max_attempts": 5}`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db.transaction import atomic

from taskqueue import exceptions
from taskqueue.backend.definitions import TaskDefinition
from taskqueue.backend.framework import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTaskBackend,
    Task,
    TaskResultDoesNotExist,
    signals,
    task_backends,
)
from taskqueue.backend.tasks import DJANGO_FIELDS, QueueTask, changed, errors_of_django
from taskqueue.core.lazy import LazySequence
from taskqueue.declarations.arguments import Call
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import check_options
from taskqueue.engine.connections import project_connection
from taskqueue.exceptions import DuplicateTask, TaskDoesNotExist

LARGEST_CACHE = 1024


class TaskQueueBackend(BaseTaskBackend):
    """Run tasks of Django's framework on the tables and workers of taskqueue."""

    task_class = QueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._defaults, self._mistakes = _parse(self.options)
        make = partial(TaskDefinition.of, defaults=self._defaults)
        self._definition = lru_cache(maxsize=LARGEST_CACHE)(make)

    def validate_task(self, task: AnyTask) -> None:
        """Raise Django's `InvalidTask` if the task cannot be enqueued here."""
        # Django knows only points in time; delays are ours.
        is_delayed = task.run_after is not None and not isinstance(task.run_after, datetime)
        super().validate_task(changed(task, run_after=None) if is_delayed else task)
        self.definition_of(task)

    def definition_of(self, task: AnyTask) -> TaskDefinition:
        """Return the definition of a task, for workers. Raises Django's `InvalidTask`."""
        with errors_of_django():
            return self._definition(task)

    def declare(self, task: AnyTask) -> None:
        """Register the task for workers. Raises Django's `InvalidTask`."""
        with errors_of_django():
            registry.register(self.definition_of(task))

    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:  # type: ignore[override]
        """Write one task, in the caller's transaction.

        Raises Django's `InvalidTask`, and what `taskqueue.BaseDefinition.enqueue` does.
        """
        from taskqueue import results

        self.validate_task(task)
        with self._naming_holder():
            written = [results.enqueue(self.definition_of(task), args, kwargs)]
            answers = self._results(written, task, seen=written)
        self._announce(written, answers)
        return answers[0]

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> Sequence[AnyResult]:
        """Write many tasks, all or none; return their results in the order of the calls."""
        from taskqueue import results

        self.validate_task(task)
        definition = self.definition_of(task)
        with self._naming_holder(), _all_or_none(definition):
            written = results.enqueue_many(definition, calls)
            # A unique key may lead to an existing task, and in tests a task may run at once.
            has_key = definition.options.has_key
            answers = self._results(written, task, seen=written if has_key else written.made())
        self._announce(written, answers)
        return answers

    @contextmanager
    def _naming_holder(self) -> Iterator[None]:
        """Let a `DuplicateTask` carry the holder's result as a result of Django's framework."""
        try:
            yield
        except DuplicateTask as duplicate:
            holder: Any = duplicate.result
            if holder is not None and isinstance(holder.definition, TaskDefinition):
                duplicate.result = self.get_result(str(holder.id))
            raise

    def _results(
        self, written: Sequence[Any], task: AnyTask, *, seen: Iterable[Any]
    ) -> LazySequence[AnyResult]:
        """Return Django's results of an enqueue. All but those in `seen` are new, and have not run.

        Raises `DuplicateTask` if a task that Django's framework does not know holds the key.
        """
        from taskqueue.backend.results import enqueued_result, read_rows, stored_result

        known = [handle.id for handle in seen if not handle.created or handle.attempts]
        rows = read_rows(known) if known else {}
        own = changed(task, backend=self.alias)

        def make(place: int) -> AnyResult:
            handle = written[place]
            if handle.id not in rows:
                return enqueued_result(handle, own)
            is_own = handle.name == self.definition_of(task).name
            its_task = task if is_own else _task_of(handle)
            return stored_result(rows[handle.id], its_task, backend=self.alias)

        answers = LazySequence(len(written), make)
        if rows:  # Make all results now, so that errors are raised here.
            list(answers)
        return answers

    def _announce(self, written: Sequence[Any], answers: Sequence[AnyResult]) -> None:
        """Send Django's signal for new and changed tasks."""
        if not _is_heard():
            return
        for handle, result in zip(written, answers, strict=True):
            if handle.created or handle.updated:
                signals.task_enqueued.send(type(self), task_result=result)

    def get_result(self, result_id: str) -> AnyResult:
        """Return the result of a task by its id. Raises `TaskResultDoesNotExist`.

        On an event loop it is read in a thread, which does not see uncommitted changes of the
        caller: use `aget_result` there.
        """
        from taskqueue.backend.results import read_rows, stored_result
        from taskqueue.engine.control.locking import id_of

        try:
            identifier = id_of(result_id)
        except TaskDoesNotExist as error:
            raise TaskResultDoesNotExist(result_id) from error
        row = read_rows([identifier]).get(identifier)
        if row is None:
            raise TaskResultDoesNotExist(result_id)
        definition = registry.find(row[0].name)
        if not isinstance(definition, TaskDefinition):
            raise TaskResultDoesNotExist(
                f"Task {result_id} runs {row[0].name!r}, which is not declared with Django's @task."
            )
        return stored_result(row, definition.task, backend=self.alias)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return mistakes in the settings of this backend."""
        messages: list[CheckMessage] = [
            Error(f"TASKS[{self.alias!r}]['OPTIONS']: {mistake}", id="taskqueue.E010")
            for mistake in self._mistakes
        ]
        if not apps.is_installed("taskqueue"):
            messages.append(
                Error(
                    f"TASKS[{self.alias!r}] needs the app 'taskqueue'.",
                    hint="Add 'taskqueue' to INSTALLED_APPS.",
                    id="taskqueue.E011",
                )
            )
        return messages


def _is_heard() -> bool:
    """Return whether Django's signal has a receiver besides Django's own, which logs at DEBUG."""
    own = id(signals.log_task_enqueued)
    keys = [key for key, *_ in signals.task_enqueued.receivers]
    return signals.logger.isEnabledFor(logging.DEBUG) or any(first != own for first, _ in keys)


def _all_or_none(definition: TaskDefinition) -> AbstractContextManager[None]:
    """Return a transaction if a task of another kind may hold the unique key.

    That is possible for any key, because other definitions can name the scope of this one.
    """
    if not definition.options.has_key:
        return nullcontext()
    return atomic(using=project_connection().alias)


def _task_of(holder: Any) -> AnyTask:
    """Return the task of Django's framework that holds a key. Raises `DuplicateTask` for others."""
    if isinstance(holder.definition, TaskDefinition):
        return holder.definition.task
    raise DuplicateTask(
        f"Task {holder.id} holds the unique key. It runs {holder.name!r}, which is not declared "
        "with Django's @task.",
        holder,
    )


def _parse(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the valid entries of `OPTIONS`, and the mistakes."""
    options: dict[str, Any] = {}
    mistakes = []
    for name, value in raw.items():
        try:
            if name in DJANGO_FIELDS or name == "name":
                raise exceptions.InvalidTask(
                    f"{name} belongs to each task: set it in @task({name}=...)."
                )
            options |= check_options({name: value}, declared=True)
        except (exceptions.InvalidTask, exceptions.InvalidArguments, TypeError) as error:
            mistakes.append(str(error))
    return options, mistakes


def adopt(name: str) -> TaskDefinition | None:
    """Return the definition of a task that was declared for another backend and enqueued here.

    Its module must have been loaded: nothing is imported because a row names it.
    """
    module_name, _, function_name = name.rpartition(".")
    module = sys.modules.get(module_name)
    task = vars(module).get(function_name) if module else None
    if not isinstance(task, Task) or task.module_path != name:
        return None
    for alias in task_backends:
        try:
            backend = task_backends[alias]
        except InvalidTaskBackend:
            continue
        if isinstance(backend, TaskQueueBackend):
            return backend.definition_of(changed(task, backend=alias))
    return None
