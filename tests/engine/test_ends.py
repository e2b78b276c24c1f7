"""Every way in which a task can end passes the one door for ends, exactly once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

import taskqueue
from taskqueue.control import TaskFilter, cancel_many
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine import broadcast, multi_worker
from taskqueue.engine.record import record_each
from taskqueue.engine.retention import KEEPS_KEY, PRUNE_AFTER, Retention
from taskqueue.engine.rows import Ended
from taskqueue.engine.statement import fetch
from taskqueue.engine.takeover import end_departed
from taskqueue.engine.tally import Tally
from taskqueue.models import Task, Worker
from taskqueue.results import TaskResult
from tests.engine.lost_workers import held_by_lost, worker_row
from tests.engine.steps import claim_one, end, outcome, past, policy, run_out
from tests.engine.test_apart import take
from tests.engine.test_takeover import take_over_now
from tests.sample.tasks import add
from tests.test_states import ACTS, put

pytestmark = pytest.mark.django_db
NOW = timezone.now()
DAY = timedelta(days=1)


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[Ended]:
    """Return the ends that are announced."""
    seen: list[Ended] = []
    add_ends = Tally.add_ends

    def listen(tally: Tally, ended: Iterable[Ended]) -> None:
        new = list(ended)
        seen.extend(new)
        add_ends(tally, new)

    monkeypatch.setattr(Tally, "add_ends", listen)
    return seen


@pytest.mark.parametrize("status", list(TaskStatus))
def test_every_act_that_ends_a_task_announces_it_once_and_no_other_act_does(
    status: TaskStatus, announced: list[Ended]
) -> None:
    for name, act in ACTS.items():
        with transaction.atomic():
            result = put(status)
            announced.clear()
            act(result)
            task = Task.objects.get(id=result.id)
            has_ended = task.status in FINISHED and status not in FINISHED
            end_of_it = Ended(str(task.id), task.queue_name, task.name, task.status)
            assert announced == ([end_of_it] if has_ended else []), name
            transaction.set_rollback(True)


def take_both() -> tuple[Any, Any]:
    [first], [second] = take("a"), take("b")
    return first, second


def all_succeed(result: TaskResult[Any]) -> None:
    for claimed in take_both():
        end(claimed, OutcomeKind.SUCCEEDED)


def one_fails_for_good(result: TaskResult[Any]) -> None:
    first, second = take_both()
    end(first, OutcomeKind.FAILED)
    end(second, OutcomeKind.SUCCEEDED)


def both_fail_in_one_batch(result: TaskResult[Any]) -> None:
    batch = [outcome(claimed, OutcomeKind.FAILED) for claimed in take_both()]
    record_each(connection, batch, policy=policy(), tally=Tally())


def one_fails_for_good_and_the_other_is_withdrawn(result: TaskResult[Any]) -> None:
    """The last lease leaves no row from which its task could be found."""
    first, second = take_both()
    end(first, OutcomeKind.FAILED, retryable=False)
    end(second, OutcomeKind.UNSTARTED)


def is_cancelled_between_its_workers(result: TaskResult[Any]) -> None:
    [first] = take("a")
    end(first, OutcomeKind.SUCCEEDED)
    result.cancel()


def is_stopped(result: TaskResult[Any]) -> None:
    first, second = take_both()
    result.cancel()
    end(first, OutcomeKind.STOPPED)
    end(second, OutcomeKind.LOST)


def is_past_its_deadline(result: TaskResult[Any]) -> None:
    [first] = take("a")
    end(first, OutcomeKind.SUCCEEDED)
    Task.objects.update(deadline_at=past())
    multi_worker.end_overdue(connection, policy=policy())


def loses_both_workers(result: TaskResult[Any]) -> None:
    Task.objects.update(max_crashes=1)
    for claimed in take_both():
        run_out(claimed)
    take_over_now()


def waits_for_workers_that_are_gone(result: TaskResult[Any]) -> None:
    Task.objects.update(
        broadcast=True, workers=1, open_slots=1, worker_names=["gone"], pinned_to="gone"
    )
    broadcast.release_gone(connection, policy=policy())


@pytest.mark.parametrize(
    "way",
    [
        all_succeed,
        one_fails_for_good,
        both_fail_in_one_batch,
        one_fails_for_good_and_the_other_is_withdrawn,
        is_cancelled_between_its_workers,
        is_stopped,
        is_past_its_deadline,
        loses_both_workers,
        waits_for_workers_that_are_gone,
    ],
)
def test_a_task_of_several_workers_is_announced_once(
    way: Callable[[TaskResult[Any]], None], announced: list[Ended]
) -> None:
    result = add.using(workers=2).enqueue(1)
    way(result)
    task = Task.objects.get()
    assert task.status in FINISHED
    assert announced == [Ended(str(task.id), task.queue_name, task.name, task.status)]


def test_attempts_of_lost_workers_that_are_ended_by_hand_announce_their_tasks(
    announced: list[Ended],
) -> None:
    result, _ = held_by_lost()
    result.cancel()
    assert [each.task_id for each in announced] == [str(result.id)]


def test_tasks_of_a_worker_that_has_departed_are_announced(announced: list[Ended]) -> None:
    result = add.using(max_crashes=1).enqueue(1)
    incarnation = worker_row("w1").incarnation
    claim_one()
    assert end_departed(connection, incarnation, policy=policy(), tally=Tally()).is_done
    assert [(each.task_id, each.status) for each in announced] == [(str(result.id), "failed")]
    assert Worker.objects.get().status == "lost"


def test_an_outcome_that_is_refused_twice_announces_one_end(announced: list[Ended]) -> None:
    add.enqueue(1)
    sent = outcome(claim_one(), OutcomeKind.SUCCEEDED)
    for _ in range(2):
        record_each(connection, [sent, sent], policy=policy(), tally=Tally())
    assert len(announced) == 1


def test_many_that_are_cancelled_keep_their_own_retention(announced: list[Ended]) -> None:
    for retention in (None, DAY, 2 * DAY):
        add.using(retention=retention).enqueue_many([((1,), {})] * 2)
    cancel_many(TaskFilter(queue_name="default"))
    assert len(announced) == 6
    kept = {task.prune_after - task.finished_at for task in Task.objects.all()}
    assert kept == {DAY, 2 * DAY, 7 * DAY}


def test_nobody_but_the_door_counts_ends() -> None:
    root = Path(taskqueue.__file__).parent
    callers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "add_ends" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "add_ends"
    }
    assert callers == {"engine/ends.py"}


@pytest.mark.postgresql_only
def test_retention_in_sql_is_retention_in_python() -> None:
    rule = PRUNE_AFTER.format(finished_at="%s::timestamptz", kept_for="%s::interval")
    statement = f"""
        SELECT {rule}, {KEEPS_KEY}
        FROM (SELECT %s::interval, %s::timestamptz, %s::bool, %s::text, %s::bigint)
            AS task (retention, unique_until, holds_unique_key, unique_for, step_id)
    """
    for kept_for, retention, until, holds, unique_for, step_id in product(
        [None, timedelta(0), DAY],
        [None, timedelta(0), DAY],
        [None, NOW - DAY, NOW + 3 * DAY],
        [False, True],
        ["", "finished", "started", "duration", "kept"],
        [None, 1],
    ):
        columns = Retention(retention, until, holds, unique_for, step_id)
        [row] = fetch(connection, statement, (NOW, kept_for, *columns))
        assert row == (columns.prune_after(NOW, kept_for), columns.keeps_key), columns
