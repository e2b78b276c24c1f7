"""Bugs in enqueues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"


def key_never_held(planting: Planting) -> None:
    """A task is put down with its key, and does not hold it."""

    def payload_columns(payload: Any) -> Any:
        return before(payload) | {"holds_unique_key": False}

    before = planting.replace(
        f"{ENGINE}.{planting.vendor}.enqueue:payload_columns", payload_columns
    )


def key_released_at_claim(planting: Planting) -> None:
    """A key is free as soon as its task has started."""
    old = {
        "postgresql": "task.holds_unique_key AND task.unique_for <> 'started'",
        "sqlite": "holds_unique_key AND unique_for <> 'started'",
    }[planting.vendor]
    planting.rewrite(f"{ENGINE}.{planting.vendor}.claim:CLAIM", old, "false")


def scopes_mixed_up(planting: Planting) -> None:
    """The keys of all definitions are in one scope."""

    def make_spec(definition: Any, settings: Any) -> Any:
        return replace(before(definition, settings), unique_scope="all")

    before = planting.replace(f"{ENGINE}.making_specs:make_spec", make_spec)


def wrong_holder_answered(planting: Planting) -> None:
    """Who loses the race for a key is told an id that no task has."""

    def meet_holder(*arguments: Any, **named: Any) -> Any:
        met = before(*arguments, **named)
        return met._replace(id=uuid4().hex) if met is not None else None

    before = planting.replace(f"{ENGINE}.enqueue:meet_holder", meet_holder)


def enqueued_twice(planting: Planting) -> None:
    """An enqueue is tried again that had succeeded."""

    def insert(connection: Any, request: Any, payload: Any) -> Any:
        before.__func__(connection, request, payload)
        again = payload._replace(id=uuid4().hex, unique_key=None)
        return before.__func__(connection, request, again)

    before = planting.replace(planting.wording("insert"), staticmethod(insert))


def enqueue_apart(planting: Planting) -> None:
    """An enqueue commits for itself, whatever becomes of its caller's transaction."""
    from taskqueue.engine.connections import open_worker_connection

    def insert(connection: Any, request: Any, payload: Any) -> Any:
        if not connection.in_atomic_block:
            return before.__func__(connection, request, payload)
        own = open_worker_connection(silence=2)
        try:
            return before.__func__(own, request, payload)
        finally:
            own.close()

    before = planting.replace(planting.wording("insert"), staticmethod(insert))
