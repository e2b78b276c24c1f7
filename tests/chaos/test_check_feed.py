"""Feeds of events that the checker must object to: invariant 18."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.feed_rows import (
    DeliveryRow,
    Feed,
    FeedRow,
    HandledRow,
    ReadRow,
    SubscriptionRow,
)
from tests.chaos.history import History
from tests.chaos.story import Story, found

SECRET = "a secret"
KINDS = ("task.enqueued", "task.started", "task.succeeded")


def event(seq: int | None, kind: str, *, text: str = "", id: int = 0) -> FeedRow:
    attempt = 0 if kind == "task.enqueued" else 1
    return FeedRow(
        id or seq or 0, seq, kind, 1000.0 + (seq or 0), "task-1", "shop.pay", "default", attempt,
        text,
    )  # fmt: skip


EVENTS = tuple(event(seq, kind) for seq, kind in enumerate(KINDS, 1))
HANDLED = HandledRow("task-2", "shop.tell", 3, "{}")
DELIVERY = DeliveryRow("delivery", "7", 1, 1, "{}")
READ = tuple(ReadRow(row.seq or 0, row.kind, row.task_id) for row in EVENTS)
FEED = Feed(
    since=0.0,
    canaries=(SECRET,),
    read=READ,
    told=("{}",),
    events=EVENTS,
    subscriptions=(
        SubscriptionRow("handler", "shop.tell", ["task.succeeded"], ["shop.*"]),
        SubscriptionRow("endpoint", "7", ["task.enqueued"], []),
    ),
    handled=(HANDLED,),
    deliveries=(DELIVERY,),
)
LATER = (event(1, KINDS[0]), event(3, KINDS[1]), event(4, KINDS[2]))
SWAPPED = (event(1, KINDS[2]), event(2, KINDS[1]), event(3, KINDS[0]))
OF_HANDLER = event(3, KINDS[2])._replace(name="shop.tell")
OF_PACKAGE = event(3, KINDS[2])._replace(name="taskqueue.webhooks.deliver")


def told(story: Story) -> History:
    task = story.enqueue()
    lease = story.claim(task)
    story.run(lease)
    story.end(lease, "succeeded")
    return story.history(feed=FEED)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"events": (*EVENTS, event(None, "worker.stopped", id=9)._replace(task_id=""))},
        {"read": READ[:2]},
        {"events": EVENTS[1:], "since": None},
        {"events": (*EVENTS[:2], OF_HANDLER), "handled": ()},
        {"events": (*EVENTS[:2], OF_PACKAGE), "handled": ()},
    ],
    ids=["as it should", "a worker's end", "read so far", "nobody has subscribed",
         "of a handler", "of the package"],
)  # fmt: skip
def test_a_feed_that_equals_the_changes_is_believed(story: Story, changed: dict[str, Any]) -> None:
    history = told(story)
    assert found(story.history(feed=history.feed._replace(**changed))) == set()


@pytest.mark.parametrize(
    "changed",
    [
        {"events": EVENTS[:2], "handled": (), "read": READ[:2]},
        {"events": (*EVENTS, event(4, KINDS[1]))},
        {"events": (*EVENTS, event(4, "task.lost"))},
        {"events": (*EVENTS[:2], event(None, KINDS[2], id=3)), "handled": (), "read": READ[:2]},
        {"events": LATER, "handled": (HANDLED._replace(seq=4),), "read": READ[:1]},
        {
            "events": SWAPPED, "read": (), "handled": (HANDLED._replace(seq=1),),
            "deliveries": (DELIVERY._replace(seq=3),),
        },
        {"handled": ()},
        {"handled": (HANDLED, HANDLED._replace(task_id="task-3"))},
        {"handled": (HANDLED, HANDLED._replace(task_id="task-3", seq=2))},
        {"deliveries": ()},
        {"deliveries": (DELIVERY, DELIVERY._replace(id="another"))},
        {"deliveries": (DELIVERY._replace(tasks=0),)},
        {"deliveries": (DELIVERY._replace(tasks=2),)},
        {"read": (READ[0], READ[2])},
        {"read": (READ[0], *READ)},
        {"read": (READ[0], READ[1]._replace(kind="task.failed"))},
        {"events": (*EVENTS[:2], event(3, KINDS[2], text=SECRET))},
        {"handled": (HANDLED._replace(text=SECRET),)},
        {"deliveries": (DELIVERY._replace(text=SECRET),)},
        {"told": (SECRET,)},
    ],
    ids=["not heard", "heard twice", "not a change", "without a number", "a gap", "out of order",
         "not handled", "handled twice", "handled wrongly", "not delivered", "delivered twice",
         "without a task", "with two tasks", "a reader misses one", "a reader has one twice",
         "a reader has another", "a secret in an event", "a secret in a task",
         "a secret in a delivery", "a secret in a message"],
)  # fmt: skip
def test_a_feed_that_differs_from_the_changes_is_doubted(
    story: Story, changed: dict[str, Any]
) -> None:
    history = told(story)
    assert found(story.history(feed=history.feed._replace(**changed))) == {18}


def test_changes_before_the_subscription_may_or_may_not_be_in_the_feed(story: Story) -> None:
    history = told(story)
    since = history.changes[-1].at
    for events in (EVENTS, (event(1, KINDS[2]),)):
        feed = Feed(since=since, events=events)
        assert found(story.history(feed=feed)) == set()


def test_a_feed_is_the_same_when_it_is_loaded_again(story: Story, tmp_path: Path) -> None:
    history = told(story)
    history.save(tmp_path / "history")
    assert History.load(tmp_path / "history").feed == history.feed
