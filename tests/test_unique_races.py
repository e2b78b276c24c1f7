"""One key, many who want it at the same moment: one holder, and no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Task
from tests.engine.steps import (
    claim,
    end,
    run_at_once,
)
from tests.racing import race
from tests.sample.tasks import echo, unique

pytestmark = pytest.mark.django_db

only = echo.using(unique_key="only")


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_enqueues_of_the_same_keys_in_opposite_orders_do_not_deadlock() -> None:
    keys = [f"k{number}" for number in range(100)]
    calls = [((key,), {}) for key in keys]
    run_at_once(
        [
            lambda: unique.enqueue_many(calls),
            lambda: unique.enqueue_many(calls[::-1]),
            lambda: unique.enqueue_many(calls),
            lambda: unique.enqueue_many(calls[::-1]),
        ]
    )
    assert Task.objects.count() == 100


RACE = """
from tests.sample.tasks import unique
results = [unique.enqueue("same") for _ in range(100)]
print(sum(result.created for result in results), *{str(result.id) for result in results})
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_a_thousand_enqueues_from_many_processes_give_one_live_task(tmp_path: Path) -> None:
    answers = race(RACE, tmp_path, 10)
    (task,) = Task.objects.all()
    assert sum(int(created) for created, *_ in answers) == 1
    assert {id for _, *ids in answers for id in ids} == {str(task.id)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
@pytest.mark.parametrize("unique_for", ["finished", "started", 0.01])
def test_a_key_changes_hands_without_two_holders_or_an_error(unique_for: Any) -> None:
    """Enqueues race with claims, ends, and holders whose time runs out."""
    definition = echo.using(unique_key="only", unique_for=unique_for)
    live: list[int] = []

    def enqueue() -> None:
        for _ in range(40):
            definition.enqueue()
            live.append(Task.objects.filter(holds_unique_key=True).count())

    def work() -> None:
        for _ in range(40):
            with transaction.atomic():
                claimed = claim(1)
            for each in claimed:
                with transaction.atomic():
                    end(each, OutcomeKind.SUCCEEDED)

    run_at_once([enqueue, enqueue, enqueue, work])
    assert set(live) <= {0, 1}
    assert Task.objects.filter(holds_unique_key=True).count() <= 1
