"""The kind of `id`: the id of a task, given by whoever enqueues it."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from taskqueue.core.uuid7 import made_at
from taskqueue.declarations.option_kinds import Kind
from taskqueue.exceptions import InvalidTask

# Seconds between the making of an id and its use. Lists and searches go by ids, as if each had been
# made when its task was enqueued, within an hour.
LONGEST_AGE = 1800


class OwnId(Kind):
    """A UUID of version 7 that was made a moment ago; in JSON and text as text."""

    def check(self, name: str, value: Any) -> UUID:
        own = self.parse(name, value)
        if not isinstance(own, UUID) or own.version != 7:
            raise InvalidTask(
                f"{name} must be a UUID of version 7, such as taskqueue.new_id() makes, not "
                f"{value!r}: tasks are listed in the order of their ids."
            )
        if abs(made_at(own) - time.time()) > LONGEST_AGE:
            raise InvalidTask(
                f"{name} must have been made within {LONGEST_AGE // 60} minutes of the enqueue, "
                f"and {own} says otherwise: tasks are listed in the order of their ids."
            )
        return own

    def parse(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return UUID(value)
        except ValueError:
            raise InvalidTask(f"{name}: {value!r} is no UUID.") from None
