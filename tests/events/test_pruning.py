"""Events are kept for a time and up to a number, and readers hear of what they missed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.events import pruning
from taskqueue.engine.events.pruning import prune_events
from taskqueue.engine.events.reading import read
from taskqueue.exceptions import EventsGone
from taskqueue.models import Audience, Event
from tests.engine.steps import another_connection, future, past
from tests.events.steps import listen, number_all
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)
ALL = EventFilter.of()


@pytest.fixture
def keep(settings: Any) -> Callable[..., None]:
    """Sets how long, or how many, events are kept."""

    def keep(**kept: Any) -> None:
        settings.TASKQUEUE = {**settings.TASKQUEUE, "EVENTS_KEPT": kept}

    return keep


def number_some(count: int) -> None:
    listen("task.enqueued")
    noop.enqueue_many([((), {})] * count)
    number_all()


def left() -> list[int | None]:
    return list(Event.objects.order_by("seq").values_list("seq", flat=True))


def test_the_oldest_are_deleted_beyond_a_number(
    keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    number_some(8)
    prune_events(connection)
    assert left() == [1, 2, 3, 4, 5, 6, 7, 8]
    keep(rows=3)
    monkeypatch.setattr(pruning, "BATCH", 2)
    assert [prune_events(connection) for _ in range(4)] == [True, True, False, False]
    assert left() == [6, 7, 8]
    assert Audience.objects.get().pruned_seq == 5


def test_those_beyond_an_age_are_deleted_in_the_order_of_their_numbers(
    keep: Callable[..., None],
) -> None:
    number_some(5)
    keep(age=timedelta(days=1), rows=None)
    Event.objects.filter(seq__in=[1, 2, 4]).update(at=past() - timedelta(days=2))
    prune_events(connection)
    # The fourth one waits for the third: numbers that are left have no gaps.
    assert left() == [3, 4, 5]


@pytest.mark.parametrize("batch", [2, 100])
def test_an_event_whose_time_lies_in_the_future_holds_up_none_behind_it(
    batch: int, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the clock of the database was set back."""
    monkeypatch.setattr(pruning, "BATCH", batch)
    number_some(8)
    keep(age=timedelta(days=1), rows=None)
    Event.objects.filter(seq__in=[1, 2, 3, 5, 8]).update(at=future(timedelta(days=1000)))
    prune_events(connection)
    # Those in front of one that is young enough are as young as that.
    assert left() == [1, 2, 3, 4, 5, 6, 7, 8]
    Event.objects.filter(seq__in=[4, 6]).update(at=past() - timedelta(days=2))
    while prune_events(connection):
        pass
    assert left() == [7, 8]
    with pytest.raises(EventsGone) as caught:
        read(connection, ALL, after=5)
    assert caught.value.oldest == 7
    assert [event.seq for event in read(connection, ALL, after=6).events] == [7, 8]


def test_events_without_a_number_are_kept(keep: Callable[..., None]) -> None:
    number_some(2)
    keep(rows=1)
    noop.enqueue()
    prune_events(connection)
    number_all()
    assert left() == [2, 3]


@pytest.mark.postgresql_only
def test_pruning_does_not_wait_for_the_session_that_numbers_events(
    keep: Callable[..., None],
) -> None:
    number_some(2)
    keep(rows=1)
    with another_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT FROM taskqueue_audience FOR UPDATE")
        assert not prune_events(connection)
        cursor.execute("ROLLBACK")
    assert left() == [1, 2]


@pytest.mark.parametrize("wanted", [ALL, EventFilter.of(name="*.add")])
def test_a_reader_gets_an_error_for_events_deleted_while_it_reads(
    wanted: EventFilter, keep: Callable[..., None]
) -> None:
    number_some(6)
    add.enqueue(1)
    number_all()
    keep(rows=2)
    assert read(connection, wanted, after=3).next_seq == 7

    def prune_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Prune right before the reader reads events, behind its look at what is kept."""
        if "taskqueue_event" in sql and not pruned:
            pruned.append(True)
            with another_connection() as other:
                prune_events(other)
        return execute(sql, params, many, context)

    pruned: list[bool] = []
    with connection.execute_wrapper(prune_first), pytest.raises(EventsGone) as caught:
        read(connection, wanted, after=3)
    assert caught.value.oldest == 6
    assert read(connection, wanted, after=5).next_seq == 7
