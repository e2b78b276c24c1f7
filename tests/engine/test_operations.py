"""One verb done to many tasks in the background: asked for, served in chunks, called off."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.uuid7 import uuid7
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.operations import serving, walking
from taskqueue.engine.operations.asking import (
    cancel_operation,
    get_operation,
    operations,
    start_operation,
)
from taskqueue.engine.operations.walking import estimate
from taskqueue.engine.pruning import OPERATIONS
from taskqueue.exceptions import OperationDoesNotExist, TransitionRefused
from taskqueue.models import Audit, Lease, Operation, Task
from tests.engine.operation_steps import audited, fail, figures, fill, seen, serve_all, statuses
from tests.engine.steps import HOUR, claim, end, future, past
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CHUNK", 3)
    monkeypatch.setattr(walking, "WINDOW", 7)


FAILED = TaskFilter(statuses=["failed"])


def test_all_that_fit_are_done_in_chunks_and_each_is_audited_with_who_and_why() -> None:
    fail(10)
    fill(2)
    operation = start_operation("retry", FAILED, query="status:failed", by="ada", reason="mended")
    assert (operation.status, operation.expected) == ("waiting", 10)
    assert statuses() == {"failed": 10, "ready": 2}
    chunks = serve_all()
    assert chunks >= 4
    assert figures(operation) == ("finished", 10, 10)
    assert statuses() == {"ready": 12}
    lines = Audit.objects.filter(verb="retry", actor="ada", reason="mended")
    assert lines.values("subject").distinct().count() == lines.count() == 10
    own = Audit.objects.get(noun="operation", verb="start")
    assert (own.subject, own.actor, own.reason) == (str(operation.id), "ada", "mended")
    assert own.detail == "retry: status:failed"


@pytest.mark.parametrize(
    ("verb", "arguments", "after"),
    [
        ("cancel", {}, {"cancelled": 5, "failed": 1}),
        ("run_now", {}, {"ready": 5, "failed": 1}),
        ("reschedule", {"run_after": 0}, {"ready": 5, "failed": 1}),
        ("update", {"changes": {"priority": 5}}, {"scheduled": 5, "failed": 1}),
        ("duplicate", {}, {"scheduled": 5, "failed": 1, "ready": 6}),
        ("delete", {}, {"scheduled": 5}),
        ("retry", {}, {"scheduled": 5, "ready": 1}),
    ],
)
def test_each_verb_does_what_it_does_to_one_task(
    verb: str, arguments: dict[str, Any], after: dict[str, int]
) -> None:
    fail(1)
    fill(5, run_after=timedelta(hours=1))
    operation = start_operation(verb, TaskFilter(everything=True), arguments=arguments)
    serve_all()
    status, matched, done = figures(operation)
    assert (status, matched) == ("finished", done)
    assert statuses() == after
    if verb == "update":
        assert Task.objects.filter(priority=5).count() == 5


def test_an_operation_asks_running_tasks_to_stop() -> None:
    fill(5)
    claim(4)
    operation = start_operation("stop", TaskFilter(name=noop.name), by="ada")
    serve_all()
    assert figures(operation) == ("finished", 4, 4)
    assert Lease.objects.filter(stop_requested_by="ada").count() == 4


def test_of_tasks_chosen_one_by_one_those_in_another_status_count_as_refused() -> None:
    failed, ready = fail(4), fill(3)
    operation = start_operation("retry", TaskFilter(ids=[*failed, *ready, uuid4()]))
    assert operation.expected == 7
    serve_all()
    assert figures(operation) == ("finished", 7, 4)


def test_a_filter_comes_only_to_what_is_in_a_status_for_the_verb() -> None:
    fail(4)
    fill(3)
    operation = start_operation("retry", TaskFilter(name=noop.name))
    assert operation.expected == 4
    serve_all()
    assert figures(operation) == ("finished", 4, 4)


def test_an_operation_that_matches_nothing_finishes_at_once() -> None:
    fill(3)
    operation = start_operation("cancel", TaskFilter(name="shop.tasks.gone"))
    serve_all()
    assert figures(operation) == ("finished", 0, 0)
    empty = start_operation("cancel", TaskFilter(ids=[]))
    none = start_operation("retry", TaskFilter(statuses=["running"]))
    serve_all()
    assert figures(empty) == figures(none) == ("finished", 0, 0)


def test_tasks_enqueued_after_an_operation_began_are_left_out() -> None:
    fill(4)
    operation = start_operation("cancel", TaskFilter(statuses=["ready"]))
    fill(3)
    serve_all()
    assert figures(operation) == ("finished", 4, 4)
    assert statuses() == {"cancelled": 4, "ready": 3}


def test_a_task_that_fails_again_during_an_operation_is_retried_once() -> None:
    fail(6)
    operation = start_operation("retry", FAILED)
    serving.step(connection)
    for claimed in claim(3):
        end(claimed, OutcomeKind.FAILED)
    serve_all()
    assert figures(operation) == ("finished", 6, 6)
    assert set(audited("retry").values()) == {1}


def test_several_operations_take_turns() -> None:
    fail(9)
    first = start_operation("retry", FAILED)
    second = start_operation("update", TaskFilter(statuses=["ready"]), arguments=PRIORITY)
    third = start_operation("delete", FAILED)
    for _ in range(3):
        serving.step(connection)
    assert [seen(each).status != "waiting" for each in (first, second, third)] == [True] * 3


PRIORITY = {"changes": {"priority": 5}}


def test_a_cancelled_operation_stops_where_it_is() -> None:
    fail(9)
    operation = start_operation("retry", FAILED)
    serving.step(connection)
    ended = cancel_operation(operation.id, by="bob", reason="the wrong ones")
    assert serve_all() == 0
    assert figures(operation) == ("cancelled", 3, 3)
    assert ended.finished_at is not None
    assert statuses() == {"failed": 6, "ready": 3}
    line = Audit.objects.get(noun="operation", verb="cancel")
    assert (line.actor, line.reason, line.before) == ("bob", "the wrong ones", "running")
    with pytest.raises(TransitionRefused, match="is cancelled"):
        cancel_operation(operation.id)


def test_a_missing_operation_is_refused() -> None:
    for key in (uuid4(), "nonsense"):
        with pytest.raises(OperationDoesNotExist, match="There is no operation"):
            cancel_operation(key)


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        ("rety", {}, "Did you mean 'retry'"),
        ("retry", {"args": []}, "no arguments"),
        ("reschedule", {}, "'run_after'"),
        ("reschedule", {"run_after": "soon"}, "run_after"),
        ("reschedule", {"run_after": None}, "run_after"),
        ("update", {"changes": {}}, "Nothing to change"),
        ("update", {"changes": {"priority": 1000}}, "priority"),
        ("update", {"changes": {"prority": 1}}, "Did you mean 'priority'"),
        ("update", {"changes": [1]}, "mapping"),
        ("update", {"changes": {"backoff": "sometimes"}}, "backoff"),
        ("update", {"changes": {"ping_interval": 100, "lease_duration": 1}}, "at most a third"),
    ],
)
def test_an_invalid_operation_is_refused_and_writes_nothing(
    verb: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        start_operation(verb, FAILED, arguments=arguments)
    assert not Operation.objects.exists()
    assert not Audit.objects.exists()


def test_more_ids_than_a_row_should_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="At most 10000"):
        start_operation("retry", TaskFilter(ids=[uuid4() for _ in range(10_001)]))


def test_a_time_given_as_a_duration_counts_from_when_it_was_asked_for() -> None:
    fill(2)
    before = future(2 * HOUR)
    start_operation(
        "reschedule", TaskFilter(statuses=["ready"]), arguments={"run_after": timedelta(hours=2)}
    )
    after = future(2 * HOUR)
    serve_all()
    [due] = set(Task.objects.values_list("run_after", flat=True))
    assert before <= due <= after


def test_terms_that_are_durations_and_names_arrive_as_they_were_meant() -> None:
    fill(2)
    changes = {"crash_delay": timedelta(minutes=2), "worker_names": ("w1",), "timeout": 5}
    start_operation("update", TaskFilter(statuses=["ready"]), arguments={"changes": changes})
    serve_all()
    task = Task.objects.all()[0]
    assert task.crash_delay == timedelta(minutes=2)
    assert task.worker_names == ["w1"]
    assert task.options["timeout"] == 5


def test_text_that_no_database_stores_is_made_fit_for_it() -> None:
    fill(1)
    operation = start_operation(
        "cancel", TaskFilter(statuses=["ready"]), query="a\0b", by="x" * 500, reason="c\0d" * 900
    )
    assert "\0" not in operation.query + operation.reason
    serve_all()
    assert figures(operation) == ("finished", 1, 1)


def test_a_verb_of_a_newer_version_is_left_to_its_workers() -> None:
    fill(1)
    operation = start_operation("cancel", TaskFilter(statuses=["ready"]))
    Operation.objects.update(verb="freeze")
    assert serve_all() == 0
    assert seen(operation).status == "waiting"


def test_operations_are_listed_newest_first() -> None:
    made = [start_operation("retry", FAILED) for _ in range(3)]
    assert [each.id for each in operations()] == [each.id for each in reversed(made)]
    assert get_operation(str(made[0].id)) == made[0]


def test_an_estimate_counts_and_shows_some_and_writes_nothing() -> None:
    failed, ready = fail(12), fill(3)
    found = estimate("retry", FAILED)
    assert (found.fitting, found.doable, found.is_capped) == (12, 12, False)
    assert [task.id for task in found.sample] == sorted(failed)[:10]
    chosen = estimate("retry", TaskFilter(ids=[*failed[:2], *ready]))
    assert (chosen.fitting, chosen.doable) == (5, 2)
    assert not Audit.objects.exists()


def test_a_count_that_would_cost_much_is_left_open() -> None:
    fill(100)
    found = estimate("cancel", TaskFilter(name="shop.tasks.gone"))
    assert (found.fitting, found.is_capped) == (0, True)
    operation = start_operation("cancel", TaskFilter(name="shop.tasks.gone"))
    assert operation.expected is None
    assert serve_all() > 10
    assert figures(operation) == ("finished", 0, 0)


def test_old_finished_operations_are_pruned() -> None:
    for age in (OPERATIONS.kept + HOUR, OPERATIONS.kept - HOUR, None):
        operation = start_operation("retry", FAILED)
        ended = None if age is None else past(age)
        Operation.objects.filter(id=operation.id).update(
            finished_at=ended, created_at=past(2 * OPERATIONS.kept)
        )
    assert OPERATIONS.prune(connection) == 1
    assert Operation.objects.count() == 2


def test_asked_for_twice_with_one_id_it_is_begun_once() -> None:
    fill(2)
    key = uuid7()
    made = [start_operation("duplicate", FAILED, operation_id=key, by="a") for _ in range(2)]
    assert [each.id for each in made] == [key, key]
    with pytest.raises(ValueError, match="a different one"):
        start_operation("duplicate", FAILED, operation_id=key, by="b")
    with pytest.raises(ValueError, match="a different one"):
        start_operation("retry", FAILED, operation_id=key, by="a")
    with pytest.raises(ValueError, match="a different one"):
        start_operation("duplicate", TaskFilter(everything=True), operation_id=key, by="a")
    assert Audit.objects.filter(noun="operation", verb="start").count() == 1
