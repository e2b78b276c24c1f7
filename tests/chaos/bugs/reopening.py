"""Bugs in retries, recounts and batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"
VERBS = f"{ENGINE}.workflows.verbs"


def retry_without_lock(planting: Planting) -> None:
    """A retry reads its workflow, and writes it as it was then."""
    from django.db.transaction import atomic

    from taskqueue.engine.control.audit import Act, audit, person
    from taskqueue.engine.dialect import dialect_for
    from taskqueue.engine.workflows import verbs
    from taskqueue.models import Workflow

    @contextmanager
    def locked(
        connection: Any, workflow_id: Any, verb: str, *, by: object, reason: object,
        statuses: Any = verbs.RUNNING, detail: str = "",
    ) -> Iterator[Any]:  # fmt: skip
        with atomic(using=connection.alias):
            workflow = Workflow.objects.using(connection.alias).get(id=workflow_id)
            verbs._require_status(workflow, statuses)
            act = Act(str(workflow.id), workflow.status, detail)
            time.sleep(0.2)
            yield workflow, dialect_for(connection).now(connection)
            audit(connection, verbs.NOUN, verb, [act], person=person(by, reason))

    planting.replace(f"{VERBS}:_locked", locked)
    planting.replace(f"{VERBS}:count_pending", lambda *arguments, **named: None)


def recount_keeps_notes(planting: Planting) -> None:
    """A recount counts ends too that are noted and still to be added."""
    planting.rewrite(
        f"{ENGINE}.workflows.counting:COUNTED",
        "step_id, -sum(number), -sum(CASE WHEN status = 'succeeded' THEN 0 ELSE number END)",
        "step_id, 0, 0",
    )

    def fold(connection: Any, step_ids: Any) -> Any:
        time.sleep(0.1)
        return before(connection, step_ids)

    before = planting.replace(f"{ENGINE}.workflows.rounds:fold", fold)


def group_fired_without_lock(planting: Planting) -> None:
    """Several sessions make batches of the same events."""
    from taskqueue.core.uuid7 import uuid7_hex
    from taskqueue.engine.batches import firing
    from taskqueue.engine.connections import orm_transaction
    from taskqueue.engine.dialect import dialect_for
    from taskqueue.engine.payloads import Payload
    from taskqueue.engine.specs import EnqueueSpec
    from taskqueue.models import Collected

    def fire(connection: Any, first_id: int) -> Any:
        with orm_transaction(connection):
            rows = Collected.objects.using(connection.alias)
            first = rows.filter(id=first_id).first()
            if first is None:
                return None
            own = rows.filter(name=first.name, group=first.group).order_by("id")
            chosen = list(own[: first.max_size])
            time.sleep(0.02)
            rows.filter(id__in=[row.id for row in chosen]).delete()
            events = ",".join(row.event for row in chosen)
            payload = Payload(uuid7_hex(), f"[[{events}]]", "{}", None)
            spec = EnqueueSpec.from_json(first.spec)
            dialect_for(connection).insert(connection, spec, payload)
        return firing.Fired(first.name, payload.id, len(chosen), False)

    planting.replace(f"{ENGINE}.batches.firing:_fire", fire)
