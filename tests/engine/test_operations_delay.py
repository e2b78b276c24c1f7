"""Operations that begin later, so that they can be undone until then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from taskqueue.control import TaskFilter, cancel_operation, start_operation
from taskqueue.engine.operations.asking import undoable
from taskqueue.engine.operations.serving import NEXT_OPERATION
from taskqueue.models import Operation
from tests.engine.operation_steps import fail, figures, let_begin, seen, serve_all, statuses
from tests.engine.steps import promote

pytestmark = pytest.mark.django_db
FAILED = TaskFilter(statuses=["failed"])


def test_nothing_is_done_before_its_time() -> None:
    fail(3)
    operation = start_operation("retry", FAILED, delay=10)
    begins = seen(operation).starts_at
    assert begins is not None
    assert begins - seen(operation).created_at > timedelta(seconds=9)
    assert serve_all() == 0
    assert statuses() == {"failed": 3}
    let_begin()
    serve_all()
    assert figures(operation) == ("finished", 3, 3)


def test_the_worker_looks_again_at_its_time_and_not_before() -> None:
    start_operation("retry", FAILED, delay=timedelta(seconds=30))
    forecast = promote()
    assert not forecast.is_over(NEXT_OPERATION)
    seconds = forecast.until(NEXT_OPERATION)
    assert seconds is not None
    assert 20 < seconds <= 30
    start_operation("retry", FAILED)
    assert promote().is_over(NEXT_OPERATION)


def test_an_operation_cancelled_within_its_delay_changes_nothing() -> None:
    fail(3)
    operation = start_operation("delete", FAILED, delay=10, by="ann")
    assert [each.id for each in undoable("ann")] == [operation.id]
    assert not undoable("bob").exists()
    ended = cancel_operation(operation.id, by="ann")
    assert (ended.status, ended.started_at) == ("cancelled", None)
    let_begin()
    assert serve_all() == 0
    assert statuses() == {"failed": 3}
    assert not undoable("ann").exists()


def test_an_operation_past_its_delay_cannot_be_undone() -> None:
    operation = start_operation("retry", FAILED, delay=10, by="ann")
    Operation.objects.filter(id=operation.id).update(starts_at=operation.created_at)
    assert not undoable("ann").exists()


@pytest.mark.parametrize("delay", [-1, 3601, float("nan"), "soon", timedelta(days=1)])
def test_a_delay_that_cannot_be_is_refused(delay: Any) -> None:
    with pytest.raises(ValueError, match="delay must be"):
        start_operation("retry", FAILED, delay=delay)
    assert not Operation.objects.exists()


def test_users_of_the_same_name_do_not_undo_each_other() -> None:
    class Person(User):
        class Meta:
            proxy = True
            app_label = "auth"

        def __str__(self) -> str:
            return "Ann Smith"

    ann, other = (Person.objects.create(username=name) for name in ("ann", "other"))
    operation = start_operation("retry", FAILED, delay=10, by=ann)
    assert operation.requested_by == "Ann Smith"
    assert [each.id for each in undoable(ann)] == [operation.id]
    assert not undoable(other).exists()
    assert not undoable("Ann Smith").exists()
    with pytest.raises(ValueError, match="is a different one"):
        start_operation("retry", FAILED, by=other, operation_id=operation.id)
