"""What the tasks of a schedule share, as it is kept in the schedule's row."""

from __future__ import annotations

from typing import Any

from taskqueue.declarations.declared_schedules import definition_of, encode_call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.engine.specs import EnqueueSpec, spec_of
from taskqueue.exceptions import InvalidSchedule


def snapshot_of(scheduled: Scheduled, definition: BaseDefinition[Any, Any]) -> dict[str, Any]:
    """The spec as plain JSON, with the arguments and the unique key. Raises `InvalidSchedule`.

    A callable that makes the unique key is called here, for the arguments are always the same.
    """
    own = definition_of(scheduled, definition)
    args, kwargs, unique_key = encode_call(scheduled, definition)
    return {
        "spec": spec_of(own).as_json(),
        "args": args,
        "kwargs": kwargs,
        "unique_key": unique_key,
    }


def spec_from(snapshot: dict[str, Any]) -> EnqueueSpec:
    """The spec again. Raises `InvalidSchedule` if another version wrote it."""
    try:
        return EnqueueSpec.from_json(snapshot["spec"])
    except (KeyError, ValueError) as error:
        raise InvalidSchedule(
            f"Its tasks' options were stored by another version of taskqueue ({error}). They are "
            "stored again when a worker starts that knows the task."
        ) from None
