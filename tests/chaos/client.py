"""The client: enqueues the mixture while faults happen, and logs what it was told.

Each request is one transaction, and its tasks carry `{"request": …, "kind": …}` as metadata. The
log holds a line before it and one after it, written through:

    {"at": 1.5, "verb": "asked", "request": "c-17", "kind": "work", "count": 3}
    {"at": 1.6, "verb": "ok", "request": "c-17", "tasks": ["…", …], "held": []}
    {"at": 1.6, "verb": "failed", "request": "c-17", "error": "…"}
    {"at": 1.6, "verb": "unknown", "request": "c-17", "error": "…"}

`tasks` are those it created, `held` those that it was given in place of new ones. After `failed`
none of its tasks may exist; after `unknown`, for which the connection broke before the answer, all
or none. `at` is the monotonic clock, which the journal uses too.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from django.db import DatabaseError, connection, transaction

from taskqueue.results import TaskResult
from tests.chaos.kinds import Kind

ROLLED_BACK = 0.03
"""How often it changes its mind within a transaction."""


class ChangedMind(Exception):
    """Rolls a transaction back."""


class Client(threading.Thread):
    """Enqueues about `count` tasks in about `seconds`, however often the database is away."""

    def __init__(
        self,
        *,
        log_path: Path,
        journal_path: Path,
        kinds: Sequence[Kind],
        chance: random.Random,
        count: int,
        seconds: float,
        name: str = "c",
    ) -> None:
        super().__init__(name=f"client-{name}", daemon=True)
        self._log_path = log_path
        self._journal = str(journal_path)
        self._kinds = kinds
        self._weights = [kind.weight for kind in kinds]
        self._chance = chance
        self._count = count
        self._seconds = seconds
        self._name = name
        self.asked = 0
        self.answers: Counter[str] = Counter()
        self.is_over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Enqueue, at an even pace, until there are enough."""
        began = time.monotonic()
        number = 0
        with self._log_path.open("a") as log:
            try:
                while self.asked < self._count and not self.is_over.is_set():
                    number += 1
                    self._request(log, f"{self._name}-{number}")
                    ahead = began + self._seconds * self.asked / self._count - time.monotonic()
                    self.is_over.wait(max(0.0, ahead))
            except BaseException as error:
                self.error = error
                raise
            finally:
                self.is_over.set()
                connection.close()

    def _request(self, log: IO[str], request: str) -> None:
        kind = self._chance.choices(self._kinds, self._weights)[0]
        count = self._chance.randint(1, min(kind.most, self._count - self.asked))
        self.asked += count
        _write(log, "asked", request, kind=kind.name, count=count)
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            self._answer(log, "failed", request, error=repr(error))
            self.is_over.wait(0.1)
            return
        try:
            results = self._enqueue(kind, request, count)
        except ChangedMind:
            self._answer(log, "failed", request, error="rolled back")
        except DatabaseError as error:
            verb = "failed" if was_answered(error) else "unknown"
            self._answer(log, verb, request, error=repr(error))
            with suppress(Exception):
                connection.close()
        else:
            self._answer(
                log, "ok", request,
                tasks=[str(result.id) for result in results if result.created],
                held=[str(result.id) for result in results if not result.created],
            )  # fmt: skip

    def _enqueue(self, kind: Kind, request: str, count: int) -> list[TaskResult[Any]]:
        chance = self._chance
        definition = kind.definition.using(
            metadata={"request": request, "kind": kind.name}, **kind.options(chance)
        )
        calls = [kind.arguments(self._journal, chance) for _ in range(count)]
        if chance.random() < ROLLED_BACK:
            with transaction.atomic():
                for arguments in calls[:5]:
                    definition.enqueue(*arguments)
                raise ChangedMind
        if count == 1:
            return [definition.enqueue(*calls[0])]
        if chance.random() < 0.5:
            return list(definition.enqueue_many([(arguments, {}) for arguments in calls]))
        with transaction.atomic():
            return [definition.enqueue(*arguments) for arguments in calls]

    def _answer(self, log: IO[str], verb: str, request: str, **fields: Any) -> None:
        self.answers[verb] += 1
        _write(log, verb, request, **fields)


def was_answered(error: BaseException) -> bool:
    """Whether the database itself said no, so that nothing can have been committed."""
    cause = error.__cause__
    if cause is None or connection.vendor == "sqlite":
        return True
    state = getattr(cause, "sqlstate", None)
    # 08 and 57: the connection, or the server, went away; a COMMIT may have been under way.
    return state is not None and not state.startswith(("08", "57"))


def _write(log: IO[str], verb: str, request: str, **fields: Any) -> None:
    line = {"at": time.monotonic(), "verb": verb, "request": request, **fields}
    log.write(json.dumps(line) + "\n")
    log.flush()
