"""Invariant 18: each committed change has exactly one event, with its effects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.feed_rows import Feed, FeedRow, SubscriptionRow
from tests.chaos.history import Change

INTERNAL = "taskqueue."
OF_CHANGES = frozenset({
    "task.enqueued", "task.started", "task.retrying", "task.succeeded", "task.failed",
    "task.cancelled", "task.lost",
})  # fmt: skip
"""The kinds of which the triggers of the run tell independently."""
OF_LEASES = frozenset({"task.started", "task.lost"})
MOST = 5
Key = tuple[str, str, int]


def events_equal_changes(evidence: Evidence) -> Iterator[Violation]:
    """18: by the changes that other triggers wrote down, the numbers, the effects, the readers."""
    feed = evidence.history.feed
    if feed.since is None:
        return
    yield from _numbers(feed)
    yield from _changes(evidence, feed, feed.since)
    yield from _order(evidence, feed, feed.since)
    for subscription in feed.subscriptions:
        yield from _effects(feed, subscription)
    for delivery in feed.deliveries:
        if delivery.tasks != 1:
            details = f"{delivery.id} has {delivery.tasks}"
            yield Violation(18, "A delivery has not exactly one task.", "", details)
    yield from _reading(feed)
    yield from _secrets(feed)


def _numbers(feed: Feed) -> Iterator[Violation]:
    """The last workers' own ends are numbered by the workers that come after them."""
    for row in feed.events:
        if row.seq is None and not row.kind.startswith("worker."):
            yield Violation(18, "An event has no number.", row.task_id, f"{row.kind}, id {row.id}")
            break
    numbers = sorted(row.seq for row in feed.events if row.seq is not None)
    if numbers != list(range(1, len(numbers) + 1)):
        details = f"{len(numbers)} numbers, {len(set(numbers))} different, up to {numbers[-1]}"
        yield Violation(18, "The numbers of events have gaps.", "", details)


def _changes(evidence: Evidence, feed: Feed, since: float) -> Iterator[Violation]:
    """What changed before everybody knew of the subscriptions may have been heard, or not."""
    changes = [(change, key) for change in evidence.history.changes for key in _keys(change)]
    possible = Counter(key for _, key in changes)
    certain = Counter(key for change, key in changes if change.at >= since)
    heard = Counter(
        (row.kind, row.task_id, (row.attempt or 0) if row.kind in OF_LEASES else 0)
        for row in feed.events
        if row.kind in OF_CHANGES
    )
    for kind, task_id, attempt in sorted((certain - heard).keys())[:MOST]:
        yield Violation(18, "A change was not heard.", task_id, f"{kind}, attempt {attempt}")
    for kind, task_id, attempt in sorted((heard - possible).keys())[:MOST]:
        details = f"{kind}, attempt {attempt}"
        yield Violation(18, "An event has no change, or is one of several.", task_id, details)


def _keys(change: Change) -> Iterator[Key]:
    """What is to be heard of a change; of a task the attempt may have been taken back."""
    if change.noun == "task":
        if kind := _kind_of(change):
            yield kind, change.task_id, 0
    elif change.noun == "lease":
        if not change.before:
            yield "task.started", change.task_id, change.attempt
        elif change.before != change.after == "lost":
            yield "task.lost", change.task_id, change.attempt


def _kind_of(change: Change) -> str:
    if not change.before:
        return "task.enqueued"
    if not change.after or change.before == change.after:
        return ""
    if is_finished(change.after):
        return f"task.{change.after}"
    return "task.retrying" if change.after == "retrying" or is_finished(change.before) else ""


def _order(evidence: Evidence, feed: Feed, since: float) -> Iterator[Violation]:
    """The numbers of a task's events rise as its row was changed."""
    told: dict[str, list[str]] = defaultdict(list)
    numbered = [(row.seq, row) for row in feed.events if row.seq is not None]
    for _, row in sorted(numbered, key=lambda pair: pair[0]):
        if row.kind in OF_CHANGES - OF_LEASES:
            told[row.task_id].append(row.kind)
    for task_id, changes in evidence.task_changes.items():
        wanted = [kind for change in changes if (kind := _kind_of(change))]
        found = told[task_id]
        is_whole = changes[0].at >= since and sorted(found) == sorted(wanted)
        if is_whole and found != wanted:
            yield Violation(18, "Events are out of order.", task_id, f"{found}, not {wanted}")
            return


def _effects(feed: Feed, subscription: SubscriptionRow) -> Iterator[Violation]:
    """Exactly one task or delivery for each event that fits and has a number."""
    wanted = Counter(
        row.seq for row in feed.events if row.seq is not None and _fits(feed, row, subscription)
    )
    if subscription.subscriber == "handler":
        made = Counter(row.seq for row in feed.handled if row.name == subscription.subject)
    else:
        made = Counter(row.seq for row in feed.deliveries if row.endpoint == subscription.subject)
    about = f"{subscription.subscriber} {subscription.subject}"
    if lost := sorted((wanted - made).keys()):
        details = f"{about}: {lost[:MOST]}, {len(lost)} in all"
        yield Violation(18, "An event has caused nothing.", "", details)
    if surplus := sorted((made - wanted).keys()):
        details = f"{about}: {surplus[:MOST]}, {len(surplus)} in all"
        yield Violation(18, "An event has caused too much.", "", details)


def _fits(feed: Feed, row: FeedRow, subscription: SubscriptionRow) -> bool:
    """What becomes of handlers' tasks and of those of the package causes nothing."""
    handlers = {each.subject for each in feed.subscriptions if each.subscriber == "handler"}
    is_own = row.name in handlers or row.name.startswith(INTERNAL)
    names = subscription.names
    return (
        row.kind in subscription.kinds
        and not (row.kind.startswith("task.") and is_own)
        and (not names or any(fnmatchcase(row.name, pattern) for pattern in names))
    )


def _reading(feed: Feed) -> Iterator[Violation]:
    """A reader that went on from number to number has missed nothing, and got nothing twice."""
    numbers = [row.seq for row in feed.read]
    if numbers != list(range(1, len(numbers) + 1)):
        at = next(place for place, seq in enumerate(numbers, 1) if seq != place)
        details = f"number {numbers[at - 1]} in place of {at}"
        yield Violation(18, "A reader has missed an event, or got it twice.", "", details)
    events = {row.seq: row for row in feed.events}
    for read in feed.read:
        row = events.get(read.seq)
        if row is None or (row.kind, row.task_id) != (read.kind, read.task_id):
            yield Violation(18, "A reader got another event.", read.task_id, f"number {read.seq}")
            return


def _secrets(feed: Feed) -> Iterator[Violation]:
    """Nothing of arguments, results and messages is in an event, or in what it causes."""
    places: dict[str, Iterable[str]] = {
        "an event": (row.text for row in feed.events),
        "a handler's task": (row.text for row in feed.handled),
        "a delivery": (row.text for row in feed.deliveries),
        "a message of a webhook": feed.told,
    }
    for place, texts in places.items():
        for text in texts:
            if any(canary in text for canary in feed.canaries):
                yield Violation(18, f"A secret is in {place}.", "", text[:200])
                break
