"""The small runs of limits."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from django.db import connection, transaction

from taskqueue import control
from taskqueue.core.states import FINISHED
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Limiter, Task
from tests.chaos import limit_bodies
from tests.chaos.bugs.trial import Trial
from tests.chaos.limit_rows import LimitChange, await_quiet

SWEEP = 12.0
"""Seconds in which a sweep finds what stands still."""
WAIT_FOR_LOCKS = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
HOLD = """
SELECT id FROM taskqueue_task
WHERE status = 'ready' AND route = 2
ORDER BY random()
LIMIT 30
FOR UPDATE SKIP LOCKED
"""


def crowds(trial: Trial) -> None:
    """Many tasks of a few partitions, which share limits, on several workers.

    Each key has a partition in each of three queues, so that workers claim under one of its places
    at the same time from the first task on.
    """
    chance = random.Random(4)
    journal = _started(trial, 4, 6)
    for _ in range(12):
        limit_bodies.shared.enqueue_many([((journal, 0.01), {}) for _ in range(10)])
        limit_bodies.of_tenant.enqueue_many(
            [((journal, chance.randrange(20), 0.01), {}) for _ in range(20)]
        )
        for queue_name in ("default", "second", "third"):
            limit_bodies.keyed.using(queue_name=queue_name).enqueue_many(
                [((journal, key, 0.02), {}) for key in range(4)]
            )
    _settle(trial)


def rates(trial: Trial) -> None:
    """More starts than a rate allows at once."""
    journal = _started(trial, 2, 6)
    limit_bodies.rated.enqueue_many([((journal,), {})] * 500)
    _settle(trial)


def orders(trial: Trial) -> None:
    """Sequences whose tasks fail at first, while others are enqueued behind them."""
    journal = _started(trial, 2, 4)
    for number in range(8):
        limit_bodies.ordered.enqueue_many(
            [((journal, key, number % 3, 0.005), {}) for key in range(10)]
        )
        time.sleep(0.15)
    _settle(trial)


def held_tasks(trial: Trial) -> None:
    """Somebody holds tasks that are ready, again and again, while workers claim."""
    chance = random.Random(4)
    journal = _started(trial, 4, 3)
    with _holding():
        for _ in range(40):
            limit_bodies.keyed.enqueue_many(
                [((journal, chance.randrange(15), 0.005), {}) for _ in range(6)]
            )
            limit_bodies.ordered.enqueue_many(
                [((journal, chance.randrange(6), 0, 0.005), {}) for _ in range(4)]
            )
            time.sleep(0.1)
    _settle(trial)


def held_sequences(trial: Trial) -> None:
    """Somebody holds the first task of one sequence while one claim would take it and another's.

    The queue is paused until it is held, so that the worker comes to both at once. The claim leaves
    the other sequence to the task that it took, however often it comes back for the one that is
    held.
    """
    journal = _started(trial, 1, 4)
    for keys in ((0, 1), (2, 3)):
        control.pause("default")
        free, held = (
            limit_bodies.ordered.enqueue_many([((journal, key, 0, 0.3), {})] * 6) for key in keys
        )
        ids = [result.id for result in free]
        with transaction.atomic():
            Task.objects.select_for_update().get(id=held[0].id)
            _beside(partial(control.resume, "default"))
            trial.give_time(partial(_run_together, ids), 1.5)
        trial.settle(15, all_end=True)
    _settle(trial)


def changes(trial: Trial) -> None:
    """A limit is set to nothing, and claims wait for its limiters until that is committed."""
    journal, name = _started(trial, 3, 3), "chaos.keyed"
    calls: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((journal, key, 0.0), {}) for key in range(6)
    ]
    limit_bodies.keyed.enqueue_many(calls)
    trial.settle(10, all_end=True)
    for _ in range(3):
        with _noted(trial, name, 0), transaction.atomic():
            control.override_limit(name, concurrency=0)
            _beside(lambda: limit_bodies.keyed.enqueue_many(calls))
            trial.give_time(_is_waited_for, 2)
        trial.give_time(lambda: Task.objects.filter(status="running").exists(), 0.2)
        _change(trial, name, None)
        trial.settle(10, all_end=True)
    _settle(trial)


def together(trial: Trial) -> None:
    """Claims from two queues wait for the places of one key at the same time."""
    journal = _started(trial, 3, 3)
    queues = ("default", "second")
    for _ in range(2):
        for queue_name in queues:
            limit_bodies.keyed.using(queue_name=queue_name).enqueue(journal, 0, 0.0)
        trial.settle(10, all_end=True)
        with transaction.atomic():
            list(Limiter.objects.order_by("id").select_for_update())
            for number, queue_name in enumerate(queues, 1):
                tasks = limit_bodies.keyed.using(queue_name=queue_name)
                _beside(partial(tasks.enqueue_many, [((journal, 0, 0.3), {})] * 3))
                trial.give_time(partial(_is_waited_for, number), 2)
        trial.settle(10, all_end=True)
    _settle(trial)


def pauses(trial: Trial) -> None:
    """A queue is paused while places pass on in it, so that what ends gives them back."""
    journal = _started(trial, 2, 3)
    limit_bodies.keyed.enqueue_many([((journal, number % 3, 0.01), {}) for number in range(300)])
    for number in (60, 120, 180):
        trial.wait_for(lambda number=number: trial.marks("end") >= number)
        control.pause("default")
        trial.wait_for(lambda: not Task.objects.filter(status="running").exists())
        control.resume("default")
    _settle(trial)


def successions(trial: Trial) -> None:
    """Many tasks of few keys, whose places pass on, while their limit is lowered and raised."""
    journal, name = _started(trial, 3, 3), "chaos.keyed"
    limit_bodies.keyed.enqueue_many([((journal, number % 4, 0.01), {}) for number in range(1200)])
    for number in (1, 0, None) * 5:
        time.sleep(0.2)
        _change(trial, name, number)
    _settle(trial)


def latecomers(trial: Trial) -> None:
    """A tenant comes when another one has had many tasks, and both have more."""
    journal = _started(trial, 2, 3)
    tasks = limit_bodies.of_tenant
    tasks.enqueue_many([((journal, 1, 0.002), {}) for _ in range(200)])
    trial.wait_for(lambda: not Task.objects.exclude(status__in=FINISHED).exists())
    tasks.enqueue_many([((journal, 1, 0.005), {}) for _ in range(200)])
    tasks.enqueue_many([((journal, 2, 0.005), {}) for _ in range(200)])
    _settle(trial)


def tight_queues(trial: Trial) -> None:
    """A queue is limited while workers serve it."""
    journal = _started(trial, 2, 4)
    plain = limit_bodies.keyed.using(concurrency=None, queue_name="tight")
    plain.enqueue_many([((journal, 0, 0.01), {}) for _ in range(50)])
    trial.wait_for(lambda: Task.objects.filter(status="succeeded").exists())
    with _noted(trial, "queue:tight", 1):
        control.limit_queue("tight", concurrency=1)
    trial.wait_for(lambda: not Task.objects.filter(status="running").exists() or bool(trial.bug))
    time.sleep(0.6)
    plain.enqueue_many([((journal, 0, 0.02), {}) for _ in range(60)])
    _settle(trial)


def _started(trial: Trial, workers: int, slots: int) -> str:
    """Start workers whose leases outlast a busy machine; return the path of the journal."""
    trial.lengthen_leases()
    trial.start_workers(workers, slots)
    return str(trial.journal)


def _change(trial: Trial, name: str, number: int | None) -> None:
    with suppress(TransitionRefused), _noted(trial, name, number):
        if number is None:
            control.reset_limit(name)
        else:
            control.override_limit(name, concurrency=number)


@contextmanager
def _noted(trial: Trial, name: str, number: int | None) -> Iterator[None]:
    """A limit has that number from now on, unless the change is refused."""
    asked_at = time.time()
    yield
    trial.limit_changes.append(LimitChange(name, number, asked_at, time.time()))


def _run_together(ids: Iterable[str]) -> bool:
    """Whether several of these tasks run."""
    return Task.objects.filter(id__in=ids, status="running").count() > 1


def _is_waited_for(number: int = 1) -> bool:
    """Whether so many sessions wait for locks."""
    with connection.cursor() as cursor:
        cursor.execute(WAIT_FOR_LOCKS)
        return bool(cursor.fetchone()[0] >= number)


def _beside(function: Callable[[], object]) -> None:
    """Call it on another session, beside the transaction of this one."""

    def call() -> None:
        function()
        connection.close()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@contextmanager
def _holding() -> Iterator[None]:
    """Tasks are held meanwhile, for moments, by another session."""
    is_over = threading.Event()

    def hold() -> None:
        while not is_over.wait(0.01):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(HOLD)
                is_over.wait(0.05)
        connection.close()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _settle(trial: Trial) -> None:
    """Wait until all have ended; with a bug, until a sweep has found those that cannot."""
    trial.wait_for(lambda: trial.journal.exists())
    deadline = time.monotonic() + (2 * SWEEP if trial.bug else 90)
    while Task.objects.exclude(status__in=FINISHED).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    await_quiet(4)
