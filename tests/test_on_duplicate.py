"""What a duplicate does: return the holder, raise, or replace what the holder is to do."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from taskqueue import DuplicateTask
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Audit, Task
from taskqueue.results import TaskResult
from tests.engine.steps import (
    claim_one,
    end,
    make_due,
    past,
    promote,
    task_of,
)
from tests.engine.test_apart import take
from tests.sample import tasks
from tests.sample.tasks import echo, unique

pytestmark = pytest.mark.django_db

only = echo.using(unique_key="only")


def finish(kind: OutcomeKind = OutcomeKind.SUCCEEDED) -> None:
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


def test_of_many_with_one_key_the_second_raises_though_nobody_had_it() -> None:
    with pytest.raises(DuplicateTask, match="same unique key") as error:
        only.using(on_duplicate="raise").enqueue_many([(("first",), {}), (("second",), {})])
    assert (error.value.result, error.value.place) == (None, 1)
    assert not Task.objects.exists()


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
    end(claim_one(), OutcomeKind.RETRY_LATER, delay=5)
    later = replacing.using(run_after=60).enqueue(2)
    assert (later.updated, later.status, later.args) == (True, "retrying", [2])
    make_due(first)
    assert promote().promoted == 1
    assert task_of(first).status == "ready"


def test_replace_leaves_the_task_of_another_definition_unchanged() -> None:
    shared: dict[str, Any] = {"unique_key": "shared", "unique_scope": "both"}
    holder = tasks.add.using(**shared).enqueue(1)
    other = tasks.echo.using(**shared, on_duplicate="replace").enqueue(1, 2, 3)
    assert (other.id, other.created, other.updated) == (holder.id, False, False)
    assert Task.objects.get(id=holder.id).args == [1]
    end(claim_one(), OutcomeKind.FAILED, error_class="ValueError")
    kept = {**shared, "unique_for": "kept"}
    failed = tasks.add.using(**kept).enqueue(2)
    end(claim_one(), OutcomeKind.FAILED, error_class="ValueError")
    again = tasks.echo.using(**kept, restart="all").enqueue(3)
    assert (again.id, again.updated, again.status) == (failed.id, False, "failed")


def test_replacing_a_holder_with_the_same_changes_nothing() -> None:
    first = replacing.enqueue(1, key=True)
    before = task_of(first)
    second = replacing.enqueue(1, key=True)
    assert (second.id, second.created, second.updated) == (first.id, False, False)
    third = replacing.using(run_after=past()).enqueue(1, key=True)
    assert not third.updated
    assert task_of(first).run_after == before.run_after
    assert replacing.enqueue(1, key=1).updated


kept = echo.using(unique_key="kept", unique_for="kept")


@pytest.mark.parametrize(
    ("restart", "kind", "is_restarted"),
    [
        (None, OutcomeKind.FAILED, False),
        ("failed", OutcomeKind.FAILED, True),
        ("failed", OutcomeKind.SUCCEEDED, False),
        ("failed", OutcomeKind.CANCELLED, False),
        ("all", OutcomeKind.FAILED, True),
        ("all", OutcomeKind.SUCCEEDED, True),
        ("all", OutcomeKind.CANCELLED, True),
    ],
)
def test_publishing_what_has_finished_changes_nothing_unless_restart_clears_that_end(
    restart: str | None, kind: OutcomeKind, is_restarted: bool
) -> None:
    first = kept.enqueue(1)
    finish(kind)
    ended_as = task_of(first).status

    second = kept.using(restart=restart).enqueue(2)

    task = task_of(first)
    assert (second.id, second.created, second.updated) == (first.id, False, is_restarted)
    assert task.status == ("ready" if is_restarted else ended_as)
    assert task.args == ([2] if is_restarted else [1])
    assert (task.finished_at is None) is is_restarted
    assert Audit.objects.filter(verb="retry", subject=str(first.id)).count() == is_restarted
    assert Task.objects.count() == 1


def test_a_restart_may_be_for_later_and_leaves_waiting_tasks_unchanged() -> None:
    first = kept.enqueue(1)
    assert not kept.using(restart="all").enqueue(2).updated
    finish(OutcomeKind.FAILED)
    second = kept.using(restart="failed", run_after=60, deadline=90).enqueue(3)
    task = task_of(first)
    assert (second.status, task.status, task.ready_at) == ("scheduled", "scheduled", None)
    assert task.deadline_at is not None
    assert task.failures == 0


def test_a_restarted_task_of_several_workers_is_run_by_all_of_them_again() -> None:
    shared = kept.using(workers=2, restart="all")
    result = shared.enqueue(1)
    for name in "ab":
        end(take(name)[0], OutcomeKind.SUCCEEDED, return_value="1")
    assert shared.enqueue(2).updated
    for name in "ab":
        [claimed] = take(name)
        end(claimed, OutcomeKind.SUCCEEDED, return_value="2")
    assert (task_of(result).status, task_of(result).return_value) == ("succeeded", [2, 2])
