"""A client that cancels, pauses, resumes, retries and resolves workflows of a run at random."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from taskqueue import control
from taskqueue.core.states import FINISHED
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from tests.chaos.workflow_rows import RESOLVED, VerbRow

MOST_RUNNING = 60
"""Cancels and pauses take one of so many workflows that run."""
LONGEST_PAUSE = 2.5
MOST_RETRIES = 3
"""How often each is retried at most, so that all come to an end."""


class Operator(threading.Thread):
    """Does something to one workflow after the other, and writes down what it was told."""

    def __init__(self, chance: random.Random, verbs: list[VerbRow]) -> None:
        super().__init__(name="operator", daemon=True)
        self._chance = chance
        self._verbs = verbs
        self._paused: dict[UUID, float] = {}
        self._retries: Counter[UUID] = Counter()
        self.counts: Counter[str] = Counter()
        self.deadlocks = 0
        self.is_over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Go on until it is over, and leave nothing paused."""
        acts: list[Callable[[], None]] = [
            self._cancel, self._pause, self._retry, self._retry, self._retry_from,
            self._retry_task, self._resolve,
        ]  # fmt: skip
        try:
            while not self.is_over.wait(self._chance.uniform(0.02, 0.3)):
                self._resume_due(time.monotonic())
                try:
                    self._chance.choice(acts)()
                except DatabaseError:  # After an outage a connection is of no use.
                    with suppress(Exception):
                        connection.close()
            self.resume_all()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def resume_all(self) -> None:
        """Resume what is paused, however long that takes."""
        while self._paused:
            self._resume_due(float("inf"))
            time.sleep(0.1)

    def retry_ended(self, most: int) -> int:
        """Retry that many of those that failed or were cancelled; how many were."""
        return sum(self._retry_one(id) for id in self._ended("failed", "cancelled")[:most])

    # The verbs

    def _cancel(self) -> None:
        for id in self._running():
            self._do(id, "cancel", lambda run: run.cancel("enough"))

    def _pause(self) -> None:
        for id in self._running():
            if self._do(id, "pause", lambda run: run.pause()):
                self._paused[id] = time.monotonic() + self._chance.uniform(0.2, LONGEST_PAUSE)

    def _resume_due(self, now: float) -> None:
        for id in [id for id, until in self._paused.items() if until <= now]:
            with suppress(DatabaseError):
                self._do(id, "resume", lambda run: run.resume())
                del self._paused[id]

    def _retry(self) -> None:
        ids = self._ended("failed", "cancelled") + self._failing()
        if ids:
            self._retry_one(self._chance.choice(ids))

    def _retry_one(self, id: UUID) -> bool:
        return self._do(id, "retry", lambda run: run.retry())

    def _retry_from(self) -> None:
        """Mostly of one that failed; also of one that succeeded."""
        ids = self._ended(*self._chance.choice((("failed", "cancelled"), ("succeeded",))))
        if not ids:
            return
        id = self._chance.choice(ids)
        rows = Step.objects.filter(workflow_id=id, parent_step_id=None, compensates_id=None)
        name = self._chance.choice(list(rows.values_list("name", flat=True)))
        self._do(id, "retry_from", lambda run: run.retry(from_step=name))

    def _retry_task(self) -> None:
        bad = Task.objects.filter(step_id__isnull=False, status__in=FINISHED - {"succeeded"})
        own = bad.filter(step__workflow__parent_step_id=None)
        rows = list(own.values_list("step__workflow_id", "id")[:50])
        if rows:
            id, task_id = self._chance.choice(rows)
            self._do(id, "retry_task", lambda run: control.retry(task_id))

    def _resolve(self) -> None:
        failed = Step.objects.filter(
            status="failed", kind="task", parent_step_id=None, compensates_id=None
        )
        own = failed.filter(workflow__parent_step_id=None)
        rows = list(own.order_by("-id").values_list("workflow_id", "name")[:20])
        if rows:
            id, name = self._chance.choice(rows)
            self._do(id, "resolve", lambda run: run.resolve(name, RESOLVED))

    def _running(self) -> list[UUID]:
        """One that runs, if any does."""
        rows = Workflow.objects.filter(status="running", parent_step_id=None)
        ids = list(rows.values_list("id", flat=True)[:MOST_RUNNING])
        return [self._chance.choice(ids)] if ids else []

    def _ended(self, *statuses: str) -> list[UUID]:
        """Those that may be retried once more."""
        rows = Workflow.objects.filter(status__in=statuses, parent_step_id=None).order_by("-id")
        return self._patient(rows.values_list("id", flat=True)[:100])

    def _failing(self) -> list[UUID]:
        rows = Workflow.objects.filter(status="running", parent_step_id=None)
        return self._patient(rows.exclude(failed_step="").values_list("id", flat=True)[:20])

    def _patient(self, ids: Any) -> list[UUID]:
        return [id for id in ids if self._retries[id] < MOST_RETRIES and id not in self._paused]

    def _do(self, id: UUID, name: str, act: Callable[[WorkflowRun], object]) -> bool:
        """Do it, and write down when it was asked for and answered; whether it was done."""
        asked_at = time.time()
        try:
            act(get_workflow(id))
        except TaskQueueError:
            return False
        except DatabaseError as error:
            self.deadlocks += "deadlock" in str(error)
            self._verbs.append(VerbRow(str(id), name, asked_at, None))
            with suppress(Exception):
                connection.close()
            raise
        self._verbs.append(VerbRow(str(id), name, asked_at, time.time()))
        if name.startswith("re") and name != "resume":
            self._retries[id] += 1
        self.counts[name] += 1
        return True
