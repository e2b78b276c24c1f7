"""Answers to health probes, for a web process and for the workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.db import DatabaseError, InterfaceError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from taskqueue.engine.connections import project_connection
from taskqueue.monitoring.notices import ERROR, WARNING, notices
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import (
    LOST,
    STOPPED,
    ShownWorker,
    read_workers,
    worker_named,
)
from taskqueue.monitoring.reading import NoAnswer, SharedQuestion

OK, UNAVAILABLE = "ok", "unavailable"
DATABASE, MIGRATIONS = "database", "migrations"
APP = "taskqueue"
# Seconds; probes give up after one to five.
LONGEST = 2.0


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of a check."""

    # `database` or `migrations`.
    name: str
    is_ok: bool
    # The database's error message, which is not public.
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Health:
    """The status is public; the checks are for users who may view workers."""

    checks: tuple[Check, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether all is well; the response is then 200, otherwise 503."""
        return all(check.is_ok for check in self.checks)

    @property
    def status(self) -> str:
        """`ok` or `unavailable`."""
        return OK if self.is_ok else UNAVAILABLE


def live() -> Health:
    """Return that this process answers, without any check."""
    return Health()


def ready(*, seconds: float = LONGEST) -> Health:
    """Return whether the database answers in time, with taskqueue's migrations applied.

    Callers that ask at the same time share an answer, so they use at most one connection, even
    while the database is not available.
    """
    try:
        return shared_look.answer(seconds=seconds)
    except (NoAnswer, DatabaseError, InterfaceError, OSError) as error:
        detail = " ".join(str(error).split())
        return Health(checks=(Check(name=DATABASE, is_ok=False, detail=detail),))


def _look() -> Health:
    recorder = MigrationRecorder(project_connection())
    applied = recorder.migration_qs.filter(app=APP).values_list("name", flat=True)
    missing = sorted(_leaves() - (set(applied) if recorder.has_table() else set()))
    detail = f"Not applied: {', '.join(missing)}. Run manage.py migrate." if missing else ""
    migrations = Check(name=MIGRATIONS, is_ok=not missing, detail=detail)
    return Health(checks=(Check(name=DATABASE, is_ok=True), migrations))


shared_look = SharedQuestion(_look)


@cache
def _leaves() -> frozenset[str]:
    """Return the newest migrations of taskqueue in this code."""
    return frozenset(name for _, name in MigrationLoader(None).graph.leaf_nodes(APP))


# The most workers, and queues, that are read.
MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The requirements of a probe. Times are in seconds."""

    # The name of the worker; empty for any.
    worker: str = ""
    # The host of the worker; empty for any.
    host: str = ""
    # Queues, each of which must have a worker that takes its tasks.
    queues: tuple[str, ...] = ()
    # The highest age of the last heartbeat; None for the worker's own lease.
    max_age: float | None = None
    # The longest waiting time of the oldest ready task, in these queues or in any.
    max_latency: float | None = None
    # Notices of this level or above fail the probe; empty if none do.
    notices: str = ""


def probe(wanted: Wanted) -> Health:
    """Return checks for the workers, for each queue, and for the latency of each queue."""
    candidates = _candidates(wanted)
    seen = [worker for worker in candidates if _is_seen(worker, wanted)]
    checks = [_of_workers(wanted, candidates, seen)]
    checks += [_of_queue(name, seen) for name in wanted.queues]
    if wanted.max_latency is not None:
        checks += [
            _of_latency(queue, wanted.max_latency)
            for queue in read_queues(limit=MOST)
            if not wanted.queues or queue.name in wanted.queues
        ]
    if wanted.notices:
        checks += _of_notices(wanted.notices)
    return Health(checks=tuple(checks))


def _of_notices(level: str) -> list[Check]:
    """Return a failed check for each notice of at least that level; otherwise one passed check."""
    levels = (ERROR,) if level == ERROR else (ERROR, WARNING)
    found = [notice for notice in notices() if notice.level in levels]
    failed = [
        Check(name=f"{notice.code} {notice.subject}".rstrip(), is_ok=False, detail=notice.sentence)
        for notice in found
    ]
    return failed or [Check(name="notices", is_ok=True, detail="Nothing needs attention.")]


def _candidates(wanted: Wanted) -> list[ShownWorker]:
    named = worker_named(wanted.worker) if wanted.worker else None
    found = filter(None, [named]) if wanted.worker else read_workers(limit=MOST)
    return [worker for worker in found if wanted.host in ("", worker.host)]


def _is_seen(worker: ShownWorker, wanted: Wanted) -> bool:
    """Return whether the worker counts: it must not have stopped; a lost worker may be back."""
    if wanted.max_age is None:
        return worker.is_alive
    return worker.state != STOPPED and worker.seen_seconds <= wanted.max_age


def _of_workers(wanted: Wanted, candidates: list[ShownWorker], seen: list[ShownWorker]) -> Check:
    who = f"worker named {wanted.worker!r}" if wanted.worker else "worker"
    where = f" on the host {wanted.host!r}" if wanted.host else ""
    if seen:
        # Probes of queues ask whether it takes tasks; a probe of a worker only asks whether it is
        # alive.
        latest = min(seen, key=lambda worker: (bool(_obstacle(worker)), worker.seen_seconds))
        obstacle = _obstacle(latest)
        state = f" It {obstacle} and claims nothing." if obstacle else ""
        detail = f"{latest.name} was seen {latest.seen_seconds:.1f} s ago.{state}"
        return Check(name="worker", is_ok=True, detail=detail)
    if not candidates:
        return Check(name="worker", is_ok=False, detail=f"There is no {who}{where}.")
    latest = min(candidates, key=lambda worker: worker.seen_seconds)
    ended = "ended" if latest.state == STOPPED else "was last seen"
    detail = f"No {who}{where} is running: {latest.name} {ended} {latest.seen_seconds:.1f} s ago."
    return Check(name="worker", is_ok=False, detail=detail)


def _of_queue(name: str, seen: list[ShownWorker]) -> Check:
    serving = [worker for worker in seen if worker.serves(name)]
    obstacles = [f"{worker.name} {reason}" for worker in serving if (reason := _obstacle(worker))]
    if len(obstacles) < len(serving):
        return Check(name=f"queue {name}", is_ok=True, detail="It is served.")
    why = f": {'; '.join(obstacles[:3])}" if obstacles else ""
    detail = f"No running worker takes tasks from the queue {name!r}{why}."
    return Check(name=f"queue {name}", is_ok=False, detail=detail)


def _obstacle(worker: ShownWorker) -> str:
    if worker.trouble:
        return "is in trouble"
    return "" if worker.takes_tasks or worker.state == LOST else f"is {worker.state}"


def _of_latency(queue: ShownQueue, longest: float) -> Check:
    """Check the oldest task that a running worker could claim; a paused queue passes."""
    waits = queue.reachable_seconds or 0.0
    is_ok = waits <= longest or queue.is_paused
    paused = ", which is paused" if queue.is_paused else ""
    name = f"{queue.name!r}{paused}"
    detail = f"The oldest ready task of the queue {name} has waited for {waits:.1f} s."
    return Check(name=f"latency {queue.name}", is_ok=is_ok, detail=detail)
