"""Capacity: at most so many unfinished tasks of a definition, or of a key."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from taskqueue import Capacity, CapacityReached, InvalidTask, task
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.dialect import select
from taskqueue.engine.places import FREE
from taskqueue.engine.statement import Statement
from taskqueue.models import Task
from taskqueue.monitoring.why import why
from tests.engine.steps import Undo, another_connection, claim, claim_one, end, promote, task_of
from tests.sample.tasks import add, echo

pytestmark = pytest.mark.django_db
pair = echo.using(capacity=Capacity(2, key="account"))


def enqueued(definition: Any, number: int, **kwargs: Any) -> list[Any]:
    return [definition.enqueue(**kwargs) for _ in range(number)]


def test_as_many_as_fit_are_enqueued_and_the_next_is_refused() -> None:
    first, second = enqueued(pair, 2, account=1)
    assert {task_of(first).unique_key, task_of(second).unique_key} == {
        "capacity:1#0",
        "capacity:1#1",
    }
    with pytest.raises(
        CapacityReached, match=r"is reached: 2 unfinished tasks with this key"
    ) as full:
        pair.enqueue(account=1)
    assert full.value.capacity == 2
    assert pair.enqueue(account=2).created
    assert Task.objects.count() == 3


def test_without_a_key_there_is_one_capacity_for_the_definition() -> None:
    one = echo.using(capacity=Capacity(1))
    one.enqueue(1)
    with pytest.raises(CapacityReached, match=r"of .*echo is reached: 1 unfinished task\."):
        one.enqueue(2)
    assert echo.enqueue(3).created
    assert add.using(capacity=Capacity(1)).enqueue(4).created


@pytest.mark.parametrize(
    ("kind", "fields", "is_free"),
    [
        (OutcomeKind.SUCCEEDED, {}, True),
        (OutcomeKind.FAILED, {"error_class": "ValueError"}, True),
        (OutcomeKind.CANCELLED, {}, True),
        (OutcomeKind.RETRY_LATER, {}, False),
        (OutcomeKind.SNOOZED, {}, False),
        (OutcomeKind.LOST, {}, False),
        (OutcomeKind.RETURNED, {}, False),
    ],
)
def test_a_task_counts_until_it_has_finished(
    kind: OutcomeKind, fields: dict[str, Any], is_free: bool
) -> None:
    one = echo.using(capacity=Capacity(1, when_full="drop"))
    first = one.enqueue()
    claimed = claim_one()
    assert not one.enqueue().created
    end(claimed, kind, **fields)
    again = one.enqueue()
    assert again.created is is_free
    assert (again.id == first.id) is not is_free


def test_a_dropped_call_gives_the_newest_of_the_tasks_that_are_there() -> None:
    drop = pair.using(capacity=Capacity(2, key="account", when_full="drop"))
    _, second = enqueued(drop, 2, account=1)
    third = drop.enqueue(account=1, more=True)
    assert (third.id, third.created, third.updated) == (second.id, False, False)
    assert Task.objects.count() == 2


def test_replacing_cancels_the_one_that_has_waited_longest_and_says_why() -> None:
    replace = echo.using(capacity=Capacity(2, when_full="replace"))
    running, waiting = enqueued(replace, 1)[0], None
    claimed = claim_one()
    waiting = replace.enqueue(1)
    third = replace.enqueue(2)
    assert third.created
    assert task_of(third).unique_key == task_of(waiting).unique_key
    row = task_of(waiting)
    assert (row.status, row.holds_unique_key) == ("cancelled", False)
    assert row.error_message == f"Replaced by task {third.id}: the capacity was reached."
    assert "Replaced by task" in why(row)[0].sentence
    assert task_of(running).status == "running"
    fourth = replace.enqueue(3)
    assert task_of(third).status == "cancelled"

    claim(1)
    with pytest.raises(CapacityReached):
        replace.enqueue(4)
    assert task_of(fourth).status == "running"
    end(claimed, OutcomeKind.SUCCEEDED)
    assert replace.enqueue(5).created


def test_a_replacement_that_is_rolled_back_cancels_nothing() -> None:
    replace = echo.using(capacity=Capacity(1, when_full="replace"))
    first = replace.enqueue()
    with suppress(Undo), transaction.atomic():
        replace.enqueue()
        raise Undo
    assert task_of(first).status == "ready"


def test_a_scheduled_task_counts_and_can_be_replaced() -> None:
    replace = echo.using(capacity=Capacity(1, when_full="replace"), run_after=60)
    first, second = enqueued(replace, 2)
    assert (task_of(first).status, task_of(second).status) == ("cancelled", "scheduled")
    promote()


def test_many_calls_at_once_are_all_or_none_where_they_are_refused() -> None:
    ten = echo.using(capacity=Capacity(10))
    with pytest.raises(CapacityReached):
        ten.enqueue_many([((number,), {}) for number in range(11)])
    assert not Task.objects.exists()
    assert len(ten.enqueue_many([((number,), {}) for number in range(10)])) == 10
    assert Task.objects.count() == 10


def test_of_many_calls_the_first_fit_and_the_others_are_dropped_at_once() -> None:
    ten = echo.using(capacity=Capacity(10, when_full="drop"))
    with CaptureQueriesContext(connection) as statements:
        results = ten.enqueue_many([((number,), {}) for number in range(10_000)])
    assert [result.created for result in results] == [True] * 10 + [False] * 9_990
    assert sorted(row.args[0] for row in Task.objects.all()) == list(range(10))
    assert len(statements) < 60


def test_of_many_calls_the_last_replace_the_others() -> None:
    ten = echo.using(capacity=Capacity(10, when_full="replace"))
    ten.enqueue_many([((number,), {}) for number in range(25)])
    left = Task.objects.filter(status="ready")
    assert sorted(row.args[0] for row in left) == list(range(15, 25))


def test_a_capacity_that_is_raised_counts_the_tasks_that_are_there() -> None:
    enqueued(pair, 2, account=1)
    three = echo.using(capacity=Capacity(3, key="account"))
    assert three.enqueue(account=1).created
    with pytest.raises(CapacityReached):
        three.enqueue(account=1)


def test_a_task_that_people_run_again_takes_no_place() -> None:
    one = echo.using(capacity=Capacity(1))
    first = one.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    second = one.enqueue()
    first.refresh()
    first.retry(by="ada")
    assert {task_of(first).status, task_of(second).status} == {"ready"}


def test_an_enqueue_without_a_limit_sends_as_many_statements_as_before() -> None:
    echo.enqueue()
    with CaptureQueriesContext(connection) as plain:
        echo.enqueue(1)
    with CaptureQueriesContext(connection) as limited:
        echo.using(capacity=Capacity(2)).enqueue(1)
    most = 1 if connection.vendor == "postgresql" else 2
    assert len(plain) <= most
    assert len(limited) == len(plain) + 1


def test_a_place_is_looked_up_by_its_key_whatever_the_statistics_say() -> None:
    echo.enqueue_many([((), {})] * 3000)
    for key in range(20):
        pair.enqueue(account=key)
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    planned = Statement(postgresql=explain + FREE.postgresql, sqlite=explain + FREE.sqlite)
    for setup in ("SELECT 1", "ANALYZE"):
        with connection.cursor() as cursor:
            cursor.execute(setup)
        named = {"bases": ["capacity:7"], "wanted": [1], "places": 2, "scope": echo.name}
        plan = str(select(connection, planned, **named))
        if connection.vendor == "sqlite":
            assert plan.count("taskqueue_task_unique_key (unique_key=? AND unique_scope=?)") == 2
            assert "BLOOM" not in plan
        else:
            assert "Index Scan using taskqueue_task_unique_key" in plan
            assert "Index Cond: (((unique_key)::text = " in plan


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_the_place_of_an_open_transaction_counts_and_nobody_waits_for_it() -> None:
    """Two that each take several places would else wait for each other."""
    three = echo.using(capacity=Capacity(3))
    with another_connection() as other, transaction.atomic(), other.cursor() as cursor:
        enqueued(three, 2)
        with connection.cursor() as own:
            own.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 29809 "
                "AND pid = pg_backend_pid()"
            )
            assert own.fetchone() == (2,), "Each has locked its own place alone."
        cursor.execute("BEGIN")
        cursor.execute("SET LOCAL lock_timeout = '1ms'")
        named = {"bases": ["capacity"], "wanted": [1], "places": 3, "scope": echo.name}
        ((_, place, is_expired, number),) = select(other, FREE, **named)
        assert place not in set(Task.objects.values_list("unique_key", flat=True))
        assert (is_expired, number) == (False, "1")
        with pytest.raises(CapacityReached):
            three.enqueue()
        assert [row[1] for row in select(other, FREE, **named)] == [place], "It is its own."
        cursor.execute("ROLLBACK")
        assert three.enqueue().created


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Capacity(0), "1 to 1,000, not 0"),
        (lambda: Capacity(1001), "1 to 1,000, not 1001"),
        (lambda: Capacity(True), "not True"),
        (lambda: Capacity(2.0), "not 2.0"),  # type: ignore[arg-type]
        (lambda: Capacity("2"), "not '2'"),  # type: ignore[arg-type]
        (lambda: Capacity(1, when_full="wait"), "'refuse', 'drop' or 'replace', not 'wait'"),  # type: ignore[arg-type]
        (lambda: Capacity(1, when_full=None), "not None"),  # type: ignore[arg-type]
        (lambda: Capacity(1, key=5), "the name of an argument"),  # type: ignore[arg-type]
    ],
)
def test_a_capacity_that_cannot_be_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        make()


def body(item: int = 0) -> None:
    """Whatever."""


@pytest.mark.parametrize(
    "options", [{"workers": 2}, {"worker_names": "a"}, {"broadcast": True}, {"unique_key": True}]
)
def test_options_that_a_capacity_excludes_are_refused_at_the_declaration(
    options: dict[str, Any],
) -> None:
    with pytest.raises(InvalidTask, match="exclude each other"):
        task(name="limited", capacity=Capacity(1), **options)(body)
