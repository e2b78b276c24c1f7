"""Tasks under limits in tests: they run by the statements of workers, within the limits."""

from __future__ import annotations

import pytest

from taskqueue import Concurrency, Fair, Rate, Sequence
from taskqueue.models import LimitNote, Slot
from taskqueue.testing import run_due
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db


def test_limited_tasks_run_one_after_another() -> None:
    results = [
        add.using(concurrency=Concurrency(1, key="a")).enqueue(1, 1),
        add.using(fair=Fair("a")).enqueue(1, 2),
        add.using(requires={"gpu"}).enqueue(1, 3),
        *(add.using(sequence=Sequence("a")).enqueue(1, b) for b in (4, 5)),
        add.enqueue(1, 6),
    ]
    assert len(run_due()) == len(results)
    for result in results:
        result.refresh()
        assert result.status == "succeeded"
    assert not Slot.objects.exists()
    assert not LimitNote.objects.exists()


def test_a_rate_leaves_the_others_for_later() -> None:
    add.using(rate=Rate("2/h")).enqueue_many([((1, 1), {})] * 3)
    assert len(run_due()) == 2
