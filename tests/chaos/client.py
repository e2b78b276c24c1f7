"""The client: enqueues the mixture while faults happen, and logs the answers.

Each request is one transaction, and its tasks carry `{"sequence": …, "kind": …}` as metadata. After
an answer of `failed`, none of its tasks may exist. After `unknown`, when the connection broke
before the answer came, all of them or none may exist.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection, transaction

from taskqueue.results import TaskResult
from tests.chaos.clients import ClientLog
from tests.chaos.kinds import Kind

ROLLED_BACK = 0.03
"""How often it changes its mind within a transaction."""
SMALL = 0.9
"""The greater, the smaller are the batches."""


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
    ) -> None:
        super().__init__(name="client", daemon=True)
        self._log = ClientLog(log_path)
        self._journal = str(journal_path)
        self._kinds = kinds
        self._weights = [kind.weight for kind in kinds]
        self._chance = chance
        self._count = count
        self._seconds = seconds
        self.sequence = 0
        """The number of the last request."""
        self.asked = 0
        """How many tasks it asked for, without those that were refused."""
        self.answers: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.is_over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Enqueue, at an even pace, until there are enough."""
        began = time.monotonic()
        try:
            while self.asked < self._count and not self.is_over.is_set():
                self.sequence += 1
                self._request(self.sequence)
                ahead = began + self._seconds * self.asked / self._count - time.monotonic()
                self.is_over.wait(max(0.0, ahead))
        except BaseException as error:
            self.error = error
        finally:
            self.is_over.set()
            self._log.close()
            connection.close()

    def _request(self, sequence: int) -> None:
        kind = self._chance.choices(self._kinds, self._weights)[0]
        # Mostly few, seldom many.
        size = int(self._chance.paretovariate(SMALL))
        count = min(size, kind.most, self._count - self.asked)
        self.asked += count
        definition = kind.definition.using(
            metadata={"sequence": sequence, "kind": kind.name}, **kind.options(self._chance)
        )
        calls = [kind.arguments(self._journal, self._chance) for _ in range(count)]
        self._log.asked(
            sequence,
            kind=kind.name,
            is_atomic=kind.is_atomic,
            unique_key=kind.unique_key(calls[0]),
            unique_scope=definition.unique_scope,
            workers=kind.workers,
            count=count,
        )
        is_connected = False
        try:
            connection.ensure_connection()
            is_connected = True
            results = self._enqueue(definition, calls)
        except ChangedMind:
            self.asked -= count
            self.answers["failed"] += 1
            self._log.failed(sequence)
        except DatabaseError as error:
            is_refusal = not is_connected or was_answered(error)
            self.asked -= count if is_refusal else 0
            self._on_trouble(sequence, error, is_refusal=is_refusal)
        else:
            self.answers["ok"] += 1
            created = all(result.created for result in results)
            self._log.ok(sequence, [result.id for result in results], created=created)

    def _on_trouble(self, sequence: int, error: Exception, *, is_refusal: bool) -> None:
        self.errors[f"{type(error).__name__}: {str(error).strip()[:120]}"] += 1
        self.answers["failed" if is_refusal else "unknown"] += 1
        if is_refusal:
            self._log.failed(sequence)
        else:
            self._log.unknown(sequence)
        with suppress(Exception):
            connection.close()
        self.is_over.wait(0.1)

    def _enqueue(self, definition: Any, calls: list[tuple[Any, ...]]) -> list[TaskResult[Any]]:
        if self._chance.random() < ROLLED_BACK:
            with transaction.atomic():
                for arguments in calls[:5]:
                    definition.enqueue(*arguments)
                raise ChangedMind
        if len(calls) == 1:
            return [definition.enqueue(*calls[0])]
        if self._chance.random() < 0.5:
            return list(definition.enqueue_many([(arguments, {}) for arguments in calls]))
        with transaction.atomic():
            return [definition.enqueue(*arguments) for arguments in calls]


def was_answered(error: BaseException) -> bool:
    """Whether the database itself said no, so that nothing can have been committed."""
    cause = error.__cause__
    if cause is None or connection.vendor == "sqlite":
        return True
    state = getattr(cause, "sqlstate", None)
    # 08 and 57: the connection, or the server, went away; a COMMIT may have been under way.
    return state is not None and not state.startswith(("08", "57"))
