"""Numbers of events: no gaps, no repeats, in the order in which they became visible."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections, transaction

from taskqueue import events
from taskqueue.declarations import handlers
from taskqueue.declarations.event_filters import EventFilter, fits
from taskqueue.engine.events import subscribing
from taskqueue.engine.events.declaring import end_undeclared, sync_handlers
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.events.reading import read
from taskqueue.engine.events.subscribing import keep_reading, last_seq, unsubscribe
from taskqueue.events import on
from taskqueue.exceptions import EventsGone, InvalidSubscription, TooManyReaders
from taskqueue.models import Audience, Event, Subscription, Task
from taskqueue.models.event import Subscriber
from tests.engine.steps import another_connection, past, run_at_once
from tests.events.steps import are_numbered, listen, number_all, written
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db(transaction=True)
ALL = EventFilter.of()


@pytest.fixture(autouse=True)
def _no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_handlers", {})


def numbers() -> list[int | None]:
    return list(Event.objects.order_by("id").values_list("seq", flat=True))


def test_events_get_numbers_without_gaps_in_their_order() -> None:
    listen()
    noop.enqueue_many([((), {})] * 5)
    assert number_all() == 5
    noop.enqueue()
    assert number_all() == 1
    assert [event.seq for event in written()] == [1, 2, 3, 4, 5, 6]
    assert last_seq(connection) == 6


def test_one_turn_numbers_no_more_than_its_limit() -> None:
    listen()
    noop.enqueue_many([((), {})] * 5)
    turns = [pump(connection, limit=2) for _ in range(4)]
    assert turns == [(2, True), (2, True), (1, False), (0, False)]
    assert numbers() == [1, 2, 3, 4, 5]


def test_an_event_with_an_older_id_that_commits_later_comes_behind() -> None:
    listen()
    if connection.vendor == "sqlite":
        pytest.skip("has one writer at a time")
    with another_connection() as other:
        early = noop.enqueue_many([((), {})])  # Keeps ids from being the same.
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO taskqueue_event (kind, details) VALUES ('task.lost', '{}')")
            noop.enqueue()
            number_all()
            page = read(connection, ALL, after=0)
            cursor.execute("COMMIT")
        number_all()
        late = read(connection, ALL, after=page.next_seq)
    assert early[0] is not None
    assert [event.kind for event in late.events] == ["task.lost"]
    first, last = Event.objects.get(kind="task.lost"), Event.objects.order_by("id").last()
    assert last is not None
    assert first.id < last.id
    assert page.next_seq == 2
    assert sorted(number for number in numbers() if number) == [1, 2, 3]


def test_pumps_at_once_give_each_number_once() -> None:
    listen()
    for _ in range(60):
        noop.enqueue_many([((), {})] * 5)

    def pump_all() -> None:
        own = connections["default"]
        while not are_numbered():
            pump(own, limit=7)

    run_at_once([pump_all] * 4)
    assert numbers() == list(range(1, 301))


def test_a_pump_that_dies_has_numbered_nothing() -> None:
    listen()
    subscribe_handler()
    noop.enqueue()
    with transaction.atomic():
        pump(connection)
        transaction.set_rollback(True)
    assert numbers() == [None]
    assert last_seq(connection) == 0
    assert not Task.objects.filter(name=HANDLER).exists()
    assert pump(connection).number == 1
    assert numbers() == [1, None]
    assert Task.objects.filter(name=HANDLER).count() == 1


def test_readers_get_what_fits_behind_a_number() -> None:
    listen()
    add.enqueue(1)
    noop.enqueue()
    add.using(queue_name="mail").enqueue(1)
    number_all()
    page = read(connection, EventFilter.of(name="*.add"), after=0, limit=1)
    assert ([event.seq for event in page.events], page.next_seq, page.has_more) == ([1], 1, True)
    page = read(connection, EventFilter.of(name="*.add"), after=1)
    assert ([event.seq for event in page.events], page.next_seq, page.has_more) == ([3], 3, False)
    page = read(connection, EventFilter.of("task.enqueued", queue="mail"), after=0)
    assert [event.queue for event in page.events] == ["mail"]
    task = Task.objects.get(name=noop.name)
    page = read(connection, EventFilter.of(task=task.id), after=0)
    assert [event.task for event in page.events] == [task.id]


HOSTILE = ["*?" * 9 + "Q", "*a" * 60 + "Q", "?*" * 120]


@pytest.mark.parametrize("name", ["a" * 200, "a.b", "a\nb", "a]b", "Ab", "aQ", "é" * 130])
def test_the_feed_is_searched_by_patterns_as_the_pump_matches_them(name: str) -> None:
    event = Event.objects.create(kind="task.failed", name=name, seq=1, details={})
    Audience.objects.update_or_create(defaults={"last_seq": 1})
    for pattern in [*HOSTILE, "a*", "a?b", "a.b", "*b", "?b", "a]*", "*Q", "*" * 255, "*.*"]:
        wanted = EventFilter.of(name=pattern)
        found = read(connection, wanted, after=0).events
        assert bool(found) is fits(event, wanted), pattern


def test_a_reader_does_not_pass_unnumbered_events() -> None:
    listen()
    noop.enqueue()
    assert read(connection, ALL, after=0).next_seq == 0
    number_all()
    assert read(connection, ALL, after=0).next_seq == 1


def test_a_reader_behind_deleted_events_gets_an_error() -> None:
    listen()
    noop.enqueue_many([((), {})] * 3)
    number_all()
    Event.objects.filter(seq__lte=2).delete()
    Audience.objects.update(pruned_seq=2)
    with pytest.raises(EventsGone) as caught:
        read(connection, ALL, after=1)
    assert caught.value.oldest == 3
    assert "Read on behind 2;" in str(caught.value)
    assert [event.seq for event in read(connection, ALL, after=2).events] == [3]


HANDLER = f"{__name__}.tell"


def subscribe_handler(*kinds: str, **conditions: str) -> None:
    def tell(event: dict[str, object]) -> None:
        """Hear it."""

    tell.__qualname__ = "tell"
    on(*(kinds or ("task.enqueued",)), **conditions)(tell)
    sync_handlers()


def handled() -> list[dict[str, object]]:
    tasks = Task.objects.filter(name=HANDLER).order_by("enqueued_at", "id")
    return [task.args[0] for task in tasks]


@pytest.fixture(autouse=True)
def _forget_definition() -> Iterator[None]:
    from taskqueue.declarations.definition import registry

    yield
    registry._definitions.pop(HANDLER, None)


def test_each_event_that_fits_a_handler_makes_one_task_of_it() -> None:
    subscribe_handler("task.enqueued", name="*.add")
    task = add.enqueue(1)
    noop.enqueue()
    number_all()
    number_all()
    (event,) = handled()
    assert event["kind"] == "task.enqueued"
    assert event["task"] == str(task.id)
    assert event["seq"] == 1
    assert json.loads(json.dumps(event)) == event


def test_events_of_handlers_cause_none() -> None:
    subscribe_handler("task.*")
    noop.enqueue()
    number_all()
    number_all()
    assert [event["name"] for event in handled()] == [noop.name]


def test_events_of_tasks_of_this_package_cause_none() -> None:
    subscribe_handler("task.*")
    task = noop.enqueue()
    Task.objects.filter(id=task.id).update(name="taskqueue.webhooks.deliver")
    Event.objects.update(name="taskqueue.webhooks.deliver")
    number_all()
    assert handled() == []


def test_a_handler_that_nobody_can_enqueue_keeps_back_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subscribe_handler("task.enqueued")
    broken = Subscription.objects.get()
    broken.pk, broken.subject, broken.request = None, "broken", {"spec": {}}
    broken.save(force_insert=True)
    noop.enqueue()
    assert number_all() == 2
    assert len(handled()) == 1
    assert "Events not handed on" in caplog.text


def test_one_event_that_cannot_be_handed_on_keeps_back_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subscribe_handler("task.enqueued")
    for number in range(6):
        size = 20_000 if number == 3 else 1
        Event.objects.create(kind="task.enqueued", name=str(number), details={"x": "x" * size})
    assert number_all() == 6 + 5  # And those of the handler's own tasks.
    assert [event["name"] for event in handled()] == ["0", "1", "2", "4", "5"]
    assert "events=1 first_seq=4" in caplog.text


def test_events_that_share_the_name_of_a_handler_without_being_of_its_tasks_cause_tasks() -> None:
    subscribe_handler("task.enqueued", "workflow.failed", "schedule.paused")
    for kind in ("task.enqueued", "workflow.failed", "schedule.paused"):
        Event.objects.create(kind=kind, name=HANDLER, details={})
    number_all()
    assert [event["kind"] for event in handled()] == ["workflow.failed", "schedule.paused"]


def test_a_handler_must_take_an_event_and_hold_no_key() -> None:
    with pytest.raises(InvalidSubscription, match="one argument"):
        on("task.failed")(noop)
    with pytest.raises(InvalidSubscription, match="no unique_key"):
        on("task.failed")(echo.using(unique_key="k"))
    with pytest.raises(InvalidSubscription, match=r"Did you mean 'task.failed'"):
        on("task.faild")
    with pytest.raises(InvalidSubscription, match=r"\* and \? only"):
        on("task.failed", name="[a]")


def test_handlers_that_no_code_declares_any_more_end() -> None:
    from django.utils import timezone

    from taskqueue.models import Worker

    subscribe_handler()
    assert Audience.objects.get().kinds == "task.enqueued"
    end_undeclared(connection)
    assert Subscription.objects.count() == 1
    now = timezone.now()
    Worker.objects.create(name="w", host="h", pid=1, started_at=now, seen_at=now, schedules=[])
    end_undeclared(connection)
    assert Subscription.objects.count() == 0
    assert Audience.objects.get().kinds == ""


def test_a_reader_that_does_not_come_back_is_forgotten() -> None:
    from taskqueue.engine.events.subscribing import end_overdue

    wanted = EventFilter.of("task.enqueued")
    keep_reading(connection, wanted)
    keep_reading(connection, wanted)
    assert Subscription.objects.count() == 1
    Subscription.objects.update(until=past())
    noop.enqueue()
    assert written() == []
    assert end_overdue(connection) == 1
    assert Audience.objects.get().kinds == ""
    keep_reading(connection, wanted)
    noop.enqueue()
    assert len(written()) == 1


def test_readers_with_too_many_different_filters_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscribing, "MOST_READERS", 2)
    keep_reading(connection, EventFilter.of(name="a"))
    keep_reading(connection, EventFilter.of(name="b"))
    with pytest.raises(TooManyReaders, match="try again in a minute"):
        events.since(0, name="c")
    keep_reading(connection, EventFilter.of(name="a"))
    subscribe_handler()
    assert Subscription.objects.count() == 3
    Subscription.objects.filter(names=["b"]).update(until=past())
    events.since(0, name="c")
    assert Subscription.objects.count() == 3


def test_readers_that_begin_at_once_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribing, "MOST_READERS", 2)
    counted: Any = threading.Barrier(2, timeout=1)
    real, refused = subscribing._require_room, []

    def count_together(connection: Any) -> None:
        real(connection)
        # Whoever counts without the lock meets the other one here.
        with suppress(threading.BrokenBarrierError):
            counted.wait()

    def begin(name: str) -> None:
        try:
            keep_reading(connections["default"], EventFilter.of(name=name))
        except TooManyReaders:
            refused.append(name)

    keep_reading(connection, EventFilter.of(name="a"))
    monkeypatch.setattr(subscribing, "_require_room", count_together)
    run_at_once([lambda: begin("b"), lambda: begin("c")])
    assert len(refused) == 1
    assert Subscription.objects.count() == 2


def test_ending_a_subscription_leaves_those_of_others() -> None:
    listen("task.failed")
    listen("task.enqueued")
    first = Subscription.objects.order_by("id").first()
    assert first is not None
    unsubscribe(connection, Subscriber.STREAM, first.subject)
    assert Audience.objects.get().kinds == "task.enqueued"
