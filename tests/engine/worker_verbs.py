"""The verbs of a worker on tasks that it holds, each in one call, for tests of its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import forecast, live_changes, multi_worker_task, takeover
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import record, write_logs, write_notes
from taskqueue.engine.rows import Claimed, Held, LogLine, Note
from taskqueue.engine.tally import Subject, Tally
from taskqueue.worker.duties import LOOKS
from tests.engine.steps import claim, outcome, policy

Verb = Callable[[BaseDatabaseWrapper, Sequence[Claimed]], Sized | None]
"""It gives what it has changed, one for each task, where its statement tells."""


def raw(worker: BaseDatabaseWrapper, sql: str, *parameters: Any) -> None:
    """Run a statement past Django, and past what looks at the worker's own."""
    session: Any = worker.connection
    session.execute(sql, parameters)


def record_as(kind: OutcomeKind) -> Verb:
    """A verb that gives the tasks' new statuses, by lease."""

    def verb(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
        # A worker knows what its leases are about.
        subjects = {
            each.lease_id: Subject(each.task_id, each.queue_name, each.name, None)
            for each in claimed
        }
        outcomes = [outcome(each, kind) for each in claimed]
        return record(worker, outcomes, policy=policy(), tally=Tally(subjects.get))

    return verb


def renew(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    held = [Held(each.lease_id, 30.0, 1.0) for each in claimed]
    return dialect_for(worker).renew(worker, held).renewed


def renew_ended(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    record_as(OutcomeKind.SUCCEEDED)(worker, claimed)
    held = [Held(each.lease_id, 30.0, 1.0) for each in claimed]
    return dialect_for(worker).renew(worker, held).succeeded


def write_note(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    write_notes(worker, [Note(each.lease_id, 1.0, 0.5, "half") for each in claimed])


def write_line(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    write_logs(worker, [LogLine(each.lease_id, 1.0, 20, "shop", "hello") for each in claimed])


def see_stops(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    dialect_for(worker).see_stops(worker, [each.lease_id for each in claimed])


def read_terms(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    live_changes.apply_live_changes(
        worker,
        worker="a",
        lease_ids=[each.lease_id for each in claimed],
        policy=policy(),
        tally=Tally(),
    )


def lock_shared(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    ids = [each.lease_id for each in claimed]
    raw(worker, "UPDATE taskqueue_lease SET is_shared = true WHERE id = ANY (%s)", ids)
    return multi_worker_task.lock_shared(worker, ids)


def claim_more(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    return claim(len(claimed), connection=worker)


def find_floor(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    assert dialect_for(worker).earliest_ready(worker, ["default"])


def promote(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    change_ready(worker, claimed, "status = 'scheduled', run_after = now() - interval '1 hour'")
    promoted = forecast.promote(worker, LOOKS, worker_id=0, limit=len(claimed)).promoted
    assert promoted == len(claimed)


def end_overdue(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    change_ready(worker, claimed, "deadline_at = now() - interval '1 hour'")
    return dialect_for(worker).end_overdue(worker, limit=len(claimed), policy=policy())


def prune(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    record_as(OutcomeKind.SUCCEEDED)(worker, claimed)
    ids = [each.task_id for each in claimed]
    raw(worker, "UPDATE taskqueue_task SET prune_after = 'epoch' WHERE id = ANY (%s::uuid[])", ids)
    assert dialect_for(worker).prune(worker, limit=len(claimed)) == len(claimed)


def find_expired(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> Sized:
    ids = [each.lease_id for each in claimed]
    raw(worker, "UPDATE taskqueue_lease SET expires_at = 'epoch' WHERE id = ANY (%s)", ids)
    return takeover.expired_leases(worker, limit=len(ids), grace=timedelta())


def change_ready(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed], values: str) -> None:
    """Change as many tasks as these that nobody has claimed."""
    raw(
        worker,
        f"UPDATE taskqueue_task SET {values} WHERE id IN "
        "(SELECT id FROM taskqueue_task WHERE status = 'ready' LIMIT %s)",
        len(claimed),
    )


BY_KEY: dict[str, Verb] = {
    "record successes": record_as(OutcomeKind.SUCCEEDED),
    "record failures": record_as(OutcomeKind.FAILED),
    "withdraw": record_as(OutcomeKind.UNSTARTED),
    "renew": renew,
    "renew what has ended": renew_ended,
    "write notes": write_note,
    "write log lines": write_line,
    "see stops": see_stops,
    "read terms": read_terms,
    "lock leases of several workers": lock_shared,
}
BY_INDEX: dict[str, Verb] = {
    "claim": claim_more,
    "find the floor": find_floor,
    "promote": promote,
    "end overdue tasks": end_overdue,
    "prune": prune,
    "find expired leases": find_expired,
}
