"""Wide steps are counted in parts, all of which are of one moment."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue import group
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.workflows import counting
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.models import Member, Step, StepEnd, Task
from taskqueue.testing import travelling
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.sample.tasks import add
from tests.workflows.test_reconciling import end_in_silence, end_without_folding, repairs

pytestmark = pytest.mark.django_db(transaction=True)
WIDTH, PART = 25, 10


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_COUNTED", PART)


def places_in(*places: int) -> Any:
    return Task.objects.filter(id__in=Member.objects.filter(place__in=places).values("task_id"))


def fetches(between: Any = None) -> Any:
    """Note what each statement of a cursor has found; `between` runs before the third."""
    sizes: list[int] = []

    def execute(run: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        if sql.startswith("FETCH"):
            if len(sizes) == 2 and between is not None:
                between()
            result = run(sql, params, many, context)
            sizes.append(context["cursor"].rowcount)
            return result
        return run(sql, params, many, context)

    execute.sizes = sizes  # type: ignore[attr-defined]
    return execute


def test_no_statement_counts_more_than_a_part_of_a_wide_step() -> None:
    run = group(add.s(n, 1) for n in range(WIDTH)).enqueue()
    end_in_silence(places_in(3, 12, WIDTH - 1))
    end_without_folding(2)
    noting = fetches()
    with travelling(61), connection.execute_wrapper(noting):
        reconcile(connection)
    assert (repairs(), Step.objects.get(workflow=run.id).ended) == (1, 5)
    if connection.vendor == "postgresql":
        # Three parts, then what is noted.
        assert noting.sizes == [1, 1, 1, 1]


def test_narrow_steps_are_counted_together() -> None:
    for _ in range(5):
        (add.s(1, 2) | add.s(10)).enqueue()
    noting = fetches()
    with travelling(61), connection.execute_wrapper(noting):
        reconcile(connection)
    assert repairs() == 0
    assert connection.vendor == "sqlite" or noting.sizes == [5, 0]


@pytest.mark.postgresql_only
def test_narrow_steps_are_counted_together_beside_a_wide_one() -> None:
    group(add.s(n, 1) for n in range(WIDTH)).enqueue()
    for _ in range(12):
        (add.s(1, 2) | add.s(10)).enqueue()
    noting = fetches()
    with travelling(61), connection.execute_wrapper(noting):
        reconcile(connection)
    assert repairs() == 0
    assert sum(noting.sizes) == 3 + 12
    assert len(noting.sizes) <= 6, "Not one for each of them."


@pytest.mark.postgresql_only
def test_an_end_between_two_parts_is_counted_by_its_note_alone() -> None:
    run = group(add.s(n, 1) for n in range(WIDTH)).enqueue()
    claimed = {task.task_id: task for task in claim(WIDTH)}
    last = Member.objects.get(place=WIDTH - 1)

    def end_last() -> None:
        with another_connection() as own, transaction(own):
            ended = outcome(claimed[str(last.task_id)], OutcomeKind.SUCCEEDED, return_value="1")
            record(own, [ended], policy=policy())

    noting = fetches(end_last)
    with travelling(61), connection.execute_wrapper(noting):
        reconcile(connection)
    assert noting.sizes[-1] == 0
    assert StepEnd.objects.count() == 0, "It was folded by the look that follows."
    assert (repairs(), Step.objects.get(workflow=run.id).ended) == (0, 1)
