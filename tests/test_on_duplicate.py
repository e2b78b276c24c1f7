"""What a duplicate does: return the holder, raise, or replace what the holder is to do."""

from __future__ import annotations

import pytest
from django.db import transaction

from taskqueue import DuplicateTask
from taskqueue.models import Task
from taskqueue.outcomes import Kind
from taskqueue.results import TaskResult
from tests.engine.steps import (
    claim_one,
    end,
    make_due,
    promote,
    task_of,
)
from tests.sample import tasks
from tests.sample.tasks import echo, unique

pytestmark = pytest.mark.django_db

only = echo.using(unique_key="only")


def finish(kind: Kind = Kind.SUCCEEDED) -> None:
    end(claim_one(), kind)


def test_a_duplicate_may_raise_and_tell_of_the_holder() -> None:
    definition = only.using(on_duplicate="raise")
    first = definition.enqueue()
    for call in (definition.enqueue, lambda: definition.enqueue_many([((), {})])):
        with pytest.raises(DuplicateTask, match=rf"{first.id} \(ready\) holds .* 'only'") as error:
            call()
        assert isinstance(error.value.result, TaskResult)
        assert error.value.result.id == first.id


def test_a_duplicate_that_raises_among_many_writes_nothing() -> None:
    definition = unique.using(on_duplicate="raise")
    definition.enqueue("m")
    with transaction.atomic():
        with pytest.raises(DuplicateTask):
            definition.enqueue_many([(("a",), {}), (("m",), {}), (("z",), {})])
        assert Task.objects.count() == 1  # and the caller's transaction goes on


replacing = only.using(on_duplicate="replace")


def test_a_duplicate_may_replace_arguments_and_time_of_a_waiting_holder() -> None:
    first = only.using(run_after=60).enqueue(1)
    second = replacing.enqueue(2, key=1e16)
    assert (second.id, second.created, second.updated) == (first.id, False, True)
    task = task_of(first)
    assert (second.args, second.status) == (task.args, task.status) == ([2], "ready")
    assert isinstance(task.kwargs["key"], float)
    assert task.run_after == task.ready_at == second.ready_at
    later = replacing.using(run_after=60).enqueue(3)
    assert (later.updated, later.status, later.args) == (True, "scheduled", [3])
    assert task_of(first).ready_at is None
    assert task_of(first).run_after > first.enqueued_at


def test_a_running_holder_is_returned_unchanged() -> None:
    first = only.enqueue(1)
    claim_one()
    second = replacing.enqueue(2)
    assert (second.id, second.created, second.updated) == (first.id, False, False)
    assert (second.status, second.args) == ("running", [1])


def test_a_finished_holder_is_returned_unchanged() -> None:
    kept = replacing.using(unique_for="kept")
    first = kept.enqueue(1)
    finish()
    second = kept.enqueue(2)
    assert (second.id, second.updated, second.status) == (first.id, False, "succeeded")
    assert task_of(first).args == [1]


def test_a_retrying_holder_keeps_retrying_at_the_new_time() -> None:
    first = only.enqueue(1)
    end(claim_one(), Kind.RETRY_LATER, delay=5)
    later = replacing.using(run_after=60).enqueue(2)
    assert (later.updated, later.status, later.args) == (True, "retrying", [2])
    make_due(first)
    assert promote().promoted == 1
    assert task_of(first).status == "ready"


def test_replace_leaves_the_task_of_another_definition_as_it_is() -> None:
    holder = tasks.add.using(unique_key="shared").enqueue(1)
    other = tasks.echo.using(unique_key="shared", on_duplicate="replace").enqueue(1, 2, 3)
    assert (other.id, other.created, other.updated) == (holder.id, False, False)
    assert Task.objects.get(id=holder.id).args == [1]
