"""Whether workers are there for the work: what a probe asks that can only start a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from taskqueue.monitoring.health import Check, Health
from taskqueue.monitoring.queue_stats import QueueFigures, queue_figures
from taskqueue.monitoring.read_models.worker import (
    LOST,
    STOPPED,
    ShownWorker,
    read_workers,
    worker_named,
)

MOST = 1_000
"""Workers, and queues, that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What has to be so. Times in seconds."""

    worker: str = ""
    """By its name; empty: any."""
    host: str = ""
    """Where the worker runs; empty: anywhere."""
    queues: tuple[str, ...] = ()
    """Each has to have a worker that takes tasks from it."""
    max_age: float | None = None
    """Since the last sign of life; None: the worker's own lease."""
    max_latency: float | None = None
    """How long the oldest ready task of these queues, or of any, may have waited."""


def probe(wanted: Wanted) -> Health:
    """A check for the workers, for each queue, and for the latency of each."""
    candidates = _candidates(wanted)
    seen = [worker for worker in candidates if _is_seen(worker, wanted)]
    checks = [_of_workers(wanted, candidates, seen)]
    checks += [_of_queue(name, seen) for name in wanted.queues]
    if wanted.max_latency is not None:
        checks += _of_latency(wanted, wanted.max_latency)
    return Health(checks=tuple(checks))


def _candidates(wanted: Wanted) -> list[ShownWorker]:
    if wanted.worker:
        named = worker_named(wanted.worker)
        found = [] if named is None else [named]
    else:
        found = read_workers(limit=MOST)
    return [worker for worker in found if wanted.host in ("", worker.host)]


def _is_seen(worker: ShownWorker, wanted: Wanted) -> bool:
    """One that ended by itself is gone, however lately; one that is thought lost may be back."""
    if wanted.max_age is None:
        return worker.is_alive
    return worker.state != STOPPED and worker.seen_seconds <= wanted.max_age


def _of_workers(wanted: Wanted, candidates: list[ShownWorker], seen: list[ShownWorker]) -> Check:
    who = f"worker named {wanted.worker!r}" if wanted.worker else "worker"
    where = f" on the host {wanted.host!r}" if wanted.host else ""
    if seen:
        # Whether it takes tasks is asked of a queue; a probe that only asks for life is told it.
        latest = min(seen, key=lambda worker: (bool(_obstacle(worker)), worker.seen_seconds))
        obstacle = _obstacle(latest)
        state = f" It {obstacle}, and claims nothing." if obstacle else ""
        detail = f"{latest.name} was seen {latest.seen_seconds:.1f} s ago.{state}"
        return Check(name="worker", is_ok=True, detail=detail)
    if not candidates:
        return Check(name="worker", is_ok=False, detail=f"There is no {who}{where}.")
    latest = min(candidates, key=lambda worker: worker.seen_seconds)
    ended = "ended" if latest.state == STOPPED else "was seen last"
    detail = f"No {who}{where} lives: {latest.name} {ended} {latest.seen_seconds:.1f} s ago."
    return Check(name="worker", is_ok=False, detail=detail)


def _of_queue(name: str, seen: list[ShownWorker]) -> Check:
    serving = [worker for worker in seen if worker.serves(name)]
    obstacles = [f"{worker.name} {reason}" for worker in serving if (reason := _obstacle(worker))]
    if len(obstacles) < len(serving):
        return Check(name=f"queue {name}", is_ok=True, detail="It is served.")
    why = f": {'; '.join(obstacles[:3])}" if obstacles else ""
    detail = f"No live worker takes tasks from the queue {name!r}{why}."
    return Check(name=f"queue {name}", is_ok=False, detail=detail)


def _obstacle(worker: ShownWorker) -> str:
    if worker.trouble:
        return "is in trouble"
    return "" if worker.takes_tasks or worker.state == LOST else f"is {worker.state}"


def _of_latency(wanted: Wanted, longest: float) -> Iterator[Check]:
    for queue in queue_figures(limit=MOST):
        if not wanted.queues or queue.name in wanted.queues:
            yield _of_oldest(queue, longest)


def _of_oldest(queue: QueueFigures, longest: float) -> Check:
    """Check the oldest task that a running worker could claim; a paused queue passes."""
    waits = queue.reachable_seconds or 0.0
    is_ok = waits <= longest or queue.is_paused
    paused = ", which is paused" if queue.is_paused else ""
    detail = f"The oldest ready task of the queue {queue.name!r}{paused} waits for {waits:.1f} s."
    return Check(name=f"latency {queue.name}", is_ok=is_ok, detail=detail)
