"""Invariant 10: at any instant at most one task of a scope holds a unique key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.history import Change, TaskRow


class Key(NamedTuple):
    """A key is unique within its scope."""

    scope: str
    text: str


class Hold(NamedTuple):
    """From when to when a task must hold its key, in numbers of changes, or for a while."""

    task_id: str
    since: int
    until: float
    since_at: float
    until_at: float


def keys_have_one_holder(evidence: Evidence) -> Iterator[Violation]:
    """10: at most one task of a scope holds a key; whoever loses the race gets the holder's id."""
    flagged: dict[Key, list[str]] = defaultdict(list)
    holds: dict[Key, list[Hold]] = defaultdict(list)
    for task in evidence.tasks.values():
        if task.unique_key is None:
            continue
        key = Key(task.unique_scope, task.unique_key)
        if task.holds_unique_key:
            flagged[key].append(task.id)
        changes = evidence.task_changes.get(task.id, [])
        if changes and not changes[0].before:
            holds[key].append(_hold(task, changes))
            yield from _released_early(task, changes)
    for key, task_ids in flagged.items():
        if len(task_ids) > 1:
            yield Violation(10, "Two tasks hold one key.", task_ids[1], f"{key}: {task_ids}")
    for key, of_key in holds.items():
        yield from _overlapping(key, of_key)
    yield from _strange_holders(evidence)


def _hold(task: TaskRow, changes: list[Change]) -> Hold:
    """What the task's `unique_for` promised, whatever its row says."""
    until_at = float("inf")
    if task.unique_for == "duration" and task.unique_until is not None:
        until_at = task.unique_until
    until = next((c.number for c in changes[1:] if _releases(task, c)), float("inf"))
    return Hold(task.id, changes[0].number, until, changes[0].at, until_at)


def _releases(task: TaskRow, change: Change) -> bool:
    if not change.after:
        return True
    if task.unique_for == "started":
        return change.after == "running" or is_finished(change.after)
    if task.unique_for == "finished":
        return is_finished(change.after)
    return not change.holds_unique_key


def _released_early(task: TaskRow, changes: list[Change]) -> Iterator[Violation]:
    for change in changes:
        if change is not changes[0] and _releases(task, change):
            return
        if not change.holds_unique_key:
            details = f"{task.unique_key!r} for {task.unique_for}, gone when {change.after}"
            yield Violation(10, "A task released its key early.", task.id, details)
            return


def _overlapping(key: Key, holds: list[Hold]) -> Iterator[Violation]:
    latest: Hold | None = None
    for hold in sorted(holds, key=lambda each: each.since):
        if latest and latest.until > hold.since and latest.until_at > hold.since_at:
            details = f"{key!r} was held by {latest.task_id}"
            yield Violation(10, "A key had two holders at once.", hold.task_id, details)
        latest = hold


def _strange_holders(evidence: Evidence) -> Iterator[Violation]:
    known = evidence.task_changes.keys() | evidence.tasks.keys()
    for enqueue in evidence.history.enqueues:
        if enqueue.state != "ok" or not enqueue.unique_key:
            continue
        asked = Key(enqueue.unique_scope, enqueue.unique_key)
        for task_id in enqueue.task_ids:
            task = evidence.tasks.get(task_id)
            is_other = task and (task.unique_scope, task.unique_key) != asked
            if is_other or (task_id not in known and not enqueue.created):
                yield Violation(10, "An enqueue answered a wrong holder.", task_id, str(enqueue))
