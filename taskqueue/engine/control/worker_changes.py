"""Change a running worker: its slots, its queues, their order and their slots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.serving import (
    check_concurrency,
    definition_slots_text,
    parse_definition_slots,
    parse_queues,
)
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.workers import WorkerFilter, chosen_workers
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import STOP, wake
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Worker

CHANGES = ("concurrency", "queues", "strict", "definition_slots")


def change_worker(
    name: str,
    *,
    concurrency: int | None = None,
    queues: str | None = None,
    strict: bool | None = None,
    definition_slots: str | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Change the slots and queues of a running worker until it restarts; None keeps a value.

    `queues` and `definition_slots` are texts as for the flags of `runworker`; an empty text stands
    for all queues, or for no limits. `strict`: whether it empties its queues in their order.
    Running bodies are not affected. Raises `InvalidTask`, and `WorkerDoesNotExist`.
    """
    changes = checked_changes(
        {
            "concurrency": concurrency,
            "queues": queues,
            "strict": strict,
            "definition_slots": definition_slots,
        }
    )
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        (worker,) = chosen_workers(connection, WorkerFilter(names=[name]), seen)
        wanted = {**worker.wanted, **changes}
        if wanted.get("strict", worker.is_strict) and not wanted.get("queues", worker.queues):
            raise InvalidTask(_(
                "{name} is to empty its queues in their order: name them too.", name=name
            ))  # fmt: skip
        rows = Worker.objects.using(connection.alias).filter(id=worker.id)
        rows.update(
            wanted=wanted,
            wanted_at=dialect_for(connection).now(connection),
            wanted_by=who.by,
            wanted_reason=who.reason,
            wanted_seen_at=None,
        )
        detail = json.dumps(changes, ensure_ascii=False)
        audit(connection, "worker", "change", [Act(name, worker.status, detail)], person=who)
        wake(connection, STOP)


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that are not None, in their normal form. Raises `InvalidTask`."""
    checked: dict[str, Any] = {}
    if (concurrency := changes["concurrency"]) is not None:
        checked["concurrency"] = check_concurrency(concurrency)
    if (queues := changes["queues"]) is not None:
        checked["queues"] = str(parse_queues(queues, source="queues"))
    if (strict := changes["strict"]) is not None:
        if not isinstance(strict, bool):
            raise InvalidTask(_("strict must be true or false, not {strict!r}.", strict=strict))
        checked["strict"] = strict
    if (slots := changes["definition_slots"]) is not None:
        parsed = parse_definition_slots(slots, source="definition_slots")
        checked["definition_slots"] = definition_slots_text(parsed)
    if not checked:
        raise InvalidTask(_("Nothing to change: give one of {names}.", names=", ".join(CHANGES)))
    return checked
