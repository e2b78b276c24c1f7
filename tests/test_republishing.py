"""Publishing a held key again changes the options that the call names, and no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from taskqueue import Concurrency, Fixed, InvalidTask, control
from taskqueue.core.outcomes import OutcomeKind
from tests.api.conftest import root  # noqa: F401
from tests.engine.steps import claim, claim_one, end, future, task_of
from tests.engine.test_apart import alive, take
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db

only = echo.using(unique_key="only")
replacing = only.using(on_duplicate="replace")


def test_named_options_replace_those_of_the_task() -> None:
    first = only.using(priority=3, metadata={"a": 1}, timeout=5).enqueue(1)
    named = replacing.using(
        priority=50, max_attempts=5, queue_name="mail", retention=60, backoff=Fixed(7),
        deadline=future(), metadata={"b": [1.5]}, stop_grace=2,
    )  # fmt: skip
    second = named.enqueue(1)
    assert (second.id, second.created, second.updated) == (first.id, False, True)
    task = task_of(first)
    assert (task.priority, task.max_attempts, task.queue_name) == (50, 5, "mail")
    assert (task.retention, task.metadata) == (timedelta(seconds=60), {"b": [1.5]})
    assert task.deadline_at is not None
    assert (task.options["stop_grace"], task.options["backoff"]["policy"]) == (2.0, "fixed")
    assert task.options["timeout"] == 5.0
    assert not named.enqueue(1).updated


def test_options_that_a_call_does_not_name_keep_their_edited_values() -> None:
    first = only.using(priority=3).enqueue(1)
    control.update(first.id, changes={"priority": 80}, by="anna")
    assert replacing.using(max_attempts=2).enqueue(2).updated
    task = task_of(first)
    assert (task.priority, task.max_attempts, task.args) == (80, 2, [2])


def test_only_an_option_keeps_the_place_in_line() -> None:
    first = only.enqueue(1)
    before = task_of(first)
    assert replacing.using(max_attempts=4).enqueue(1).updated
    after = task_of(first)
    assert (after.ready_at, after.run_after) == (before.ready_at, before.run_after)
    assert after.max_attempts == 4


def test_an_option_may_be_taken_back() -> None:
    first = only.using(timeout=5, worker_names=["a"], expires_after=60).enqueue(1)
    assert claim() == []
    assert replacing.using(timeout=None, worker_names=None, expires_after=None).enqueue(1).updated
    task = task_of(first)
    assert (task.options, task.worker_names, task.expires_at) == ({}, None, None)
    assert claim_one().task_id.replace("-", "") == first.id.hex


def test_workers_may_be_more_or_fewer_or_all() -> None:
    first = only.enqueue(1)
    assert replacing.using(workers=3, worker_names=["a", "b", "c"]).enqueue(1).updated
    task = task_of(first)
    assert (task.workers, task.open_slots, task.route) == (3, 3, 1)
    assert replacing.using(workers=1).enqueue(1).updated
    assert (task_of(first).workers, task_of(first).worker_names) == (1, ["a", "b", "c"])
    assert replacing.using(worker_names=["b"]).enqueue(1).updated
    assert task_of(first).pinned_to == "b"
    alive("b")
    assert replacing.using(broadcast=True, worker_names=None).enqueue(1).updated
    assert task_of(first).broadcast
    [claimed] = take("b")
    assert end(claimed, OutcomeKind.SUCCEEDED) == "succeeded"


def test_options_that_exclude_each_other_are_refused_and_nothing_changes() -> None:
    first = only.using(worker_names=["a", "b"], workers=2).enqueue(1)
    with pytest.raises(InvalidTask, match=r"workers=3 can never be reached"):
        replacing.using(workers=3).enqueue(2)
    assert task_of(first).args == [1]


def test_a_limited_task_moves_to_the_queue_that_is_named() -> None:
    limited = echo.using(unique_key="l", concurrency=Concurrency(1))
    first = limited.enqueue(1)
    before = task_of(first).partition
    assert limited.using(on_duplicate="replace", queue_name="other").enqueue(1).updated
    task = task_of(first)
    assert (task.queue_name, task.route) == ("other", 2)
    assert task.partition not in (before, None)


def test_a_running_holder_keeps_its_options() -> None:
    first = only.enqueue(1)
    claim_one()
    assert not replacing.using(priority=9).enqueue(1).updated
    assert task_of(first).priority == 0


def test_a_restart_takes_named_options_too() -> None:
    kept = echo.using(unique_key="k", unique_for="kept")
    first = kept.using(priority=1).enqueue(1)
    end(claim_one(), OutcomeKind.FAILED)
    assert kept.using(restart="failed", max_attempts=7, workers=2).enqueue(2).updated
    task = task_of(first)
    assert (task.status, task.priority, task.max_attempts) == ("ready", 1, 7)
    assert (task.workers, task.open_slots, task.route) == (2, 2, 1)


def test_over_rest_the_options_of_the_body_are_those_that_are_named(root: Any) -> None:  # noqa: F811
    body = {"name": "tests.sample.rest_tasks.tell", "unique_key": "r"}
    first = root.act("tasks/", {**body, "priority": 3}).json()
    again = {**body, "on_duplicate": "replace", "max_attempts": 4}
    told = root.act("tasks/", again).json()
    assert (told["id"], told["created"], told["updated"]) == (first["id"], False, True)
    shown = root.look(f"tasks/{first['id']}/").json()
    assert (shown["priority"], shown["max_attempts"]) == (3, 4)
