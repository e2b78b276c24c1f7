"""Running due tasks in the test's own process and transaction, as a worker would."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Unpack

from asgiref.sync import sync_to_async

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.declarations.snapshots import STEP
from taskqueue.engine import takeover
from taskqueue.engine.connections import project_connection, transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.failures import log_taken_over
from taskqueue.engine.multi_worker_task import NEVER
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.engine.tally import Tally
from taskqueue.engine.workflows import serving as workflows
from taskqueue.exceptions import Stopped, TaskQueueError
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult, get_result
from taskqueue.testing.attempts import Crash, PlayedAttempt
from taskqueue.testing.choices import Choice, Options, Which
from taskqueue.testing.journeys import seconds_ahead
from taskqueue.testing.simulated_workers import Workers
from taskqueue.worker import frames
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.duties import Duties
from taskqueue.worker.frames import Frame
from taskqueue.worker.jobs import Job
from taskqueue.worker.outcomes import aged
from taskqueue.worker.unlogged import log_unlogged, note_logged

# Exceptions that bodies may raise in addition to `Exception`. KeyboardInterrupt, `pytest.fail()`
# and others are meant for the test.
OF_BODIES = (Crash, Stopped, SystemExit, GeneratorExit, CancelledError)


class StillDue(AssertionError):
    """Tasks are still due after `limit` attempts: probably an endless loop."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One attempt that a test has run."""

    # The name of the definition.
    name: str
    attempt: int
    worker_name: str
    # The outcome: `succeeded`, `failed`, `retry_later`, `snoozed`, `cancelled` …
    outcome: str
    # The status of the task after the attempt.
    status: str
    # The handle on the task, as it was after the attempt.
    result: TaskResult[Any] = field(repr=False)
    # The exception that the body raised.
    error: BaseException | None = field(repr=False)


def run_due(*tasks: Which, **options: Unpack[Options]) -> list[Run]:
    """Run tasks until none is due, in this thread and transaction; return the attempts, in order.

    It promotes, claims and records with the statements of a worker, and serves its duties: overdue
    tasks end, due schedules enqueue, old tasks are pruned. `tasks` are definitions or names to
    which the run is limited; for `options` see `Options`. Raises `StillDue` after too many
    attempts.
    """
    return run_all(Choice.of(tasks, options))


def run_next(*tasks: Which, **options: Unpack[Options]) -> Run | None:
    """Run one attempt of the next due task; return None if none is due. See `run_due`."""
    with closing(Runner(Choice.of(tasks, options))) as runner:
        return runner.next()


def run_all(choice: Choice, *, duties: Duties | None = None) -> list[Run]:
    """Run tasks until none is due; `duties` continue from one call to the next."""
    runs: list[Run] = []
    with closing(Runner(choice, duties)) as runner:
        while (run := runner.next()) is not None:
            runs.append(run)
            if len(runs) > choice.limit:
                raise StillDue(_endless(runs, choice.limit))
    return runs


arun_due = sync_to_async(run_due, thread_sensitive=True)
arun_next = sync_to_async(run_next, thread_sensitive=True)


def _endless(runs: list[Run], limit: int) -> str:
    counts = Counter(f"{run.name} ({run.outcome})" for run in runs[-100:])
    last = ", ".join(f"{count} of {what}" for what, count in counts.most_common(3))
    return (
        f"Tasks are still due after {limit} attempts; of the last ones: {last}. A task that "
        "enqueues itself, or asks to be retried with no delay, never ends. Raise limit= if it does."
    )


def new_duties() -> Duties:
    """Return the duties of a worker that has just started: all are due at the first step."""
    return Duties(get_settings(), worker_id=0, tally=Tally())


class Runner:
    """A worker with one slot, simulated by a test."""

    def __init__(self, choice: Choice, duties: Duties | None = None) -> None:
        self._connection = project_connection()
        self._choice = choice
        self._policy = EndPolicy.of(get_settings())
        self._job: Job | None = None
        self._tally = Tally(self._subject_of)
        self._workers = Workers(self._connection, choice)
        self._duties = duties or new_duties()
        self._is_at_work = False

    def next(self) -> Run | None:
        """Run the next due task; None if none is due. Raises what its body raises, if chosen so."""
        # Duties go first; afterwards only when no task is ready.
        has_changed = self._is_at_work or self._tend()
        self._is_at_work = True
        found = self._workers.claim()
        while found is None and has_changed:
            has_changed = self._tend()
            found = self._workers.claim() if has_changed else None
        return None if found is None else self._run(*found)

    def close(self) -> None:
        """Unregister the simulated workers."""
        self._workers.end()

    def _tend(self) -> bool:
        """Serve the duties of a worker once; return whether this changed anything."""
        self._workers.live()
        # On SQLite the duties would wait for a second look, in the interest of the lock's holder.
        lost = takeover.take_over(
            self._connection, policy=self._policy, grace=timedelta(0), tally=self._tally
        )
        log_taken_over(self._connection, lost)
        self._duties.step(self._connection, time.monotonic() + seconds_ahead())
        return bool(lost) or self._duties.has_changed

    def _subject_of(self, lease_id: int) -> Job | None:
        return self._job if self._job is not None and self._job.lease_id == lease_id else None

    def _run(self, worker_name: str, claimed: Claimed) -> Run:
        job = self._job = Job(claimed, time.monotonic() + seconds_ahead())
        attempt = PlayedAttempt(Order._make(job.order), worker_name, self._tally)
        outcome = self._record(attempt, job, attempt.run_here())
        if self._choice.backoff == "skip" and EFFECTS[outcome].counts_as:
            self._make_due(claimed)
        attempt.callbacks.run()
        if STEP in attempt.snapshot:
            # As workers do after recording.
            workflows.serve(self._connection)
        result = get_result(claimed.task_id)
        run = Run(
            name=claimed.name,
            attempt=claimed.attempt,
            worker_name=worker_name,
            outcome=outcome,
            status=result.status,
            result=result,
            error=attempt.error,
        )
        self._raise(run)
        return run

    def _record(self, attempt: PlayedAttempt, job: Job, frame: Frame) -> str:
        """Record the attempt's outcome and return its kind; a stopped attempt is no success."""
        if frame[0] == frames.RECORDED:
            return OutcomeKind.SUCCEEDED.value
        if frame[0] != frames.OUTCOME:
            raise TaskQueueError("The database gave no answer to the COMMIT of an atomic body.")
        outcome = Outcome(*frame[1])
        with self._tally.guard(), transaction(self._connection):
            attempt.write_reports()
            recorded = record(
                self._connection,
                [aged(outcome, time.monotonic())],
                policy=self._policy,
                tally=self._tally,
            )
        note_logged(job, outcome)
        task_status, lease_status, _ = recorded.get(outcome.lease_id, (None, None, None))
        log_unlogged(job, outcome, task_status)
        if lease_status == LeaseStatus.STOPPED and outcome.kind == OutcomeKind.SUCCEEDED:
            return OutcomeKind.STOPPED.value
        return str(outcome.kind)

    def _make_due(self, claimed: Claimed) -> None:
        """Make the next attempt due now, without its backoff."""
        alias = self._connection.alias
        now = dialect_for(self._connection).now(self._connection)
        tasks = Task.objects.using(alias).filter(id=claimed.task_id, status=TaskStatus.RETRYING)
        tasks.update(run_after=now)
        waiting = Lease.objects.using(alias).filter(id=claimed.lease_id, retry_at__lt=NEVER)
        waiting.update(retry_at=now)

    def _raise(self, run: Run) -> None:
        """Raise a body's exception if the test asks for it, or if it was meant for the test."""
        is_for_test = not isinstance(run.error, (Exception, *OF_BODIES))
        is_failure = self._choice.errors == "raise" and run.outcome == OutcomeKind.FAILED
        if run.error is not None and (is_for_test or is_failure):
            raise run.error
