"""Many processes enqueue at once, in transactions of their own: never more than the capacity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from taskqueue.models import Task
from tests.racing import race
from tests.sharing_out import IS_FULL

PROCESSES = 8
ROUNDS = 25 if IS_FULL else 10
"""Of enqueues and cancellations that each process makes."""
PROGRAM = """
import random
from django.db import transaction
from taskqueue import Capacity, CapacityReached, Debounce, Throttle
from taskqueue.control import cancel
from taskqueue.models import Task
from tests.sample.tasks import echo
what, rounds = arguments
chance = random.Random(number)
most = 0

def count():
    global most
    held = Task.objects.filter(status__in=["ready", "running", "scheduled", "retrying"])
    most = max(most, held.count())

def some(definition, calls):
    created = 0
    for _ in range(calls):
        try:
            created += definition.enqueue(number).created
        except CapacityReached:
            pass
    return created

created = 0
if what == "throttle":
    created = some(echo.using(throttle=Throttle("7/d")), 60)
elif what == "debounce":
    burst = echo.using(debounce=Debounce(600, key="k"))
    for n in range(60):
        created += burst.enqueue(k=1, by=number, n=n).created
else:
    limited = echo.using(capacity=Capacity(7, when_full=what))
    for _ in range(int(rounds)):
        try:
            with transaction.atomic():
                new = some(limited, chance.randint(1, 5))
                if chance.random() < 0.3:
                    raise ZeroDivisionError
            created += new
        except ZeroDivisionError:
            pass
        count()
        # Places come free while others look for one.
        waiting = Task.objects.filter(status="ready").order_by("?").values_list("id", flat=True)
        for task_id in waiting[:2]:
            try:
                cancel(task_id)
            except Exception as error:
                if type(error).__name__ not in ("TransitionRefused", "ChangedMeanwhile"):
                    raise
        count()
print(created, most)
"""

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def enqueue_at_once(what: str, folder: Path) -> Sequence[tuple[int, int]]:
    """Let the processes go at the same moment; what each created, and the most that it saw."""
    answers = race(PROGRAM, folder, PROCESSES, what, str(ROUNDS))
    return [(int(created), int(most)) for created, most in answers]


@pytest.mark.parametrize("when_full", ["refuse", "drop", "replace"])
def test_there_are_never_more_unfinished_tasks_than_the_capacity(
    when_full: str, tmp_path: Path
) -> None:
    answers = enqueue_at_once(when_full, tmp_path)
    assert max(most for _, most in answers) <= 7
    assert sum(created for created, _ in answers) == Task.objects.count()
    assert Task.objects.filter(holds_unique_key=True).count() <= 7


def test_a_throttle_lets_in_exactly_its_number(tmp_path: Path) -> None:
    answers = enqueue_at_once("throttle", tmp_path)
    assert sum(created for created, _ in answers) == Task.objects.count() == 7


def test_a_burst_from_many_processes_is_one_task_with_the_last_of_somebodys_calls(
    tmp_path: Path,
) -> None:
    answers = enqueue_at_once("debounce", tmp_path)
    (task,) = Task.objects.all()
    assert sum(created for created, _ in answers) == 1
    assert task.kwargs["n"] == 59
