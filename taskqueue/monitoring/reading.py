"""Query the queue's database: its clock, its vendor, a statement; with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine import sessions
from taskqueue.engine.connections import installed, open_worker_connection, project_connection
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.statement import Statement, fetch


def now() -> datetime:
    """Return the current time by the database's clock."""
    connection = project_connection()
    return dialect_for(connection).now(connection)


def is_postgresql() -> bool:
    """Whether the queue's database is PostgreSQL, not SQLite."""
    return sessions.is_postgresql(project_connection())


def read(statement: Statement, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the statement."""
    return select(project_connection(), statement, **parameters)


T = TypeVar("T")


class NoAnswer(Exception):
    """The database has not answered in time."""


class Question(Generic[T]):
    """A step that runs in a separate thread, on a separate connection.

    A connection to a silent host cannot be cancelled: the thread stays with it until the system
    gives up, some seconds later, but does not keep the process from exiting.
    """

    def __init__(self, step: Callable[[], T], *, seconds: float) -> None:
        self._step = step
        self._seconds = seconds
        self._answers: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="taskqueue-question", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether the step is still running; False in a fork of the process that began it."""
        return self._thread.is_alive()

    def answer(self) -> T:
        """Return the result of the step, or raise its error.

        Raises `NoAnswer` when the time is over.
        """
        self._thread.join(self._seconds)
        if self._error is not None:
            raise self._error
        if not self._answers:
            raise NoAnswer(f"The database has not answered within {self._seconds:g} s.")
        return self._answers[0]

    def _run(self) -> None:
        try:
            with _connected(self._seconds):
                self._answers.append(self._step())
        except Exception as error:
            self._error = error


class SharedQuestion(Generic[T]):
    """A step that one thread at a time runs; callers that ask meanwhile get the same answer.

    So however many ask, at most one connection waits.
    """

    def __init__(self, step: Callable[[], T]) -> None:
        self._step = step
        self.latest: Question[T] | None = None

    def answer(self, *, seconds: float) -> T:
        """Return the result of the step. Raises its error, and `NoAnswer`."""
        question = self.latest
        if question is None or not question.is_open:
            question = self.latest = Question(self._step, seconds=seconds)
        return question.answer()


@contextmanager
def _connected(seconds: float) -> Iterator[None]:
    """Use a connection of this thread only, which notices a silent network."""
    ordinary = project_connection()
    try:
        if not is_postgresql():
            yield
            return
        connection = open_worker_connection(silence=seconds)
        try:
            with installed(connection):
                yield
        finally:
            connection.close()
    finally:
        ordinary.close()


LIMIT = "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)"


@contextmanager
def time_limit(connection: BaseDatabaseWrapper, limit: str) -> Iterator[None]:
    """Use a transaction with a time limit for statements; none on SQLite, which it would lock."""
    if not is_postgresql():
        yield
        return
    with atomic(using=connection.alias):
        fetch(connection, LIMIT, (limit, limit))
        yield
