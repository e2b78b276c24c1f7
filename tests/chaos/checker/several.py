"""Invariant 16: tasks for several workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.history import Change, LeaseRow, TaskRow


def as_many_workers_as_asked(evidence: Evidence) -> Iterator[Violation]:
    """16: N leases of N distinct workers succeed, never more; no worker has two of them."""
    for task in evidence.tasks.values():
        leases = evidence.leases.get(task.id, [])
        if task.worker_names is not None:
            yield from _outsiders(task, leases)
        if not task.is_shared:
            continue
        changes = evidence.lease_changes.get(task.id, [])
        if task.id in evidence.retried:
            # What came before a restart is history, and no longer counts as shared.
            yield from _too_many(task, [lease for lease in leases if lease.is_shared])
            continue
        if any(not lease.is_shared for lease in leases):
            yield Violation(16, "A lease does not know that it is shared.", task.id)
        yield from _too_many(task, leases)
        yield from _too_few(task, leases)
        yield from _not_as_asked(evidence, task)
        yield from _at_once(task, changes)


def _outsiders(task: TaskRow, leases: list[LeaseRow]) -> Iterator[Violation]:
    """Only those that are named may take it; the names of a live task may change, its end's not."""
    for lease in leases:
        if lease.status in ("running", "succeeded") and lease.worker_name not in (
            task.worker_names or ()
        ):
            details = f"{lease.worker_name} is not among {task.worker_names}"
            yield Violation(16, "A worker took what others are named for.", task.id, details)


def _too_many(task: TaskRow, leases: list[LeaseRow]) -> Iterator[Violation]:
    taken = [lease for lease in leases if lease.status in ("running", "succeeded")]
    if len(taken) > task.workers:
        names = [lease.worker_name for lease in taken]
        details = f"{len(taken)} of {task.workers}: {names}"
        yield Violation(16, "More workers took a task than were asked for.", task.id, details)
    twice = [name for name, n in Counter(lease.worker_name for lease in taken).items() if n > 1]
    if twice:
        yield Violation(16, "A worker ran its part of a task twice.", task.id, str(twice))


def _too_few(task: TaskRow, leases: list[LeaseRow]) -> Iterator[Violation]:
    successes = sum(lease.status == "succeeded" for lease in leases)
    running = sum(lease.status == "running" for lease in leases)
    if (task.successes, task.running_leases) != (successes, running):
        details = (
            f"It counts {task.successes} successes and {task.running_leases} running, "
            f"its leases are {successes} and {running}."
        )
        yield Violation(16, "A task miscounts its workers.", task.id, details)
    if task.status == "succeeded" and successes != task.workers:
        details = f"{successes} of {task.workers}"
        yield Violation(16, "A task succeeded without all of its workers.", task.id, details)
    if is_finished(task.status) and running:
        yield Violation(16, "A task has ended while a worker runs it.", task.id, str(running))


def _not_as_asked(evidence: Evidence, task: TaskRow) -> Iterator[Violation]:
    enqueue = evidence.enqueue_of.get(task.id)
    if enqueue is None or (task.broadcast and enqueue.workers == 1):
        return
    if task.status == "succeeded" and task.successes != enqueue.workers:
        details = f"{task.successes} in place of {enqueue.workers}"
        yield Violation(16, "Another number of workers than asked for ran it.", task.id, details)


def _at_once(task: TaskRow, changes: list[Change]) -> Iterator[Violation]:
    """The same at every moment, also where the later end hides it."""
    running: dict[int, str] = {}
    succeeded: dict[str, int] = defaultdict(int)
    for change in changes:
        name = change.worker_name
        if change.after == "running" and not change.before:
            if name in running.values() or succeeded[name]:
                yield Violation(16, "A worker took a task twice.", task.id, name)
                return
            running[change.attempt] = name
            if not task.broadcast and len(running) + sum(succeeded.values()) > task.workers:
                details = f"{[*running.values()]} run, {[*succeeded]} succeeded"
                yield Violation(16, "Too many workers held a task at once.", task.id, details)
                return
        else:
            running.pop(change.attempt, None)
            succeeded[name] += change.after == "succeeded" and change.before == "running"
