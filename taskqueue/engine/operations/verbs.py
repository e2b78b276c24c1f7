"""What can be done to many tasks in the background, and what each is given besides.

Arguments are checked and made fit for JSON when an operation is asked for, so that what a worker
finds later is what was meant then: a duration is a moment by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.suggestions import nearest
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.changes import (
    moment_of,
    reschedule_each,
    run_now_each,
    update_each,
)
from taskqueue.engine.control.deleting import delete_each
from taskqueue.engine.control.duplicating import duplicate_each
from taskqueue.engine.control.mutable_options import check_terms, refusals
from taskqueue.engine.control.retrying import retry_each
from taskqueue.engine.control.tasks import cancel_each, request_stop_each
from taskqueue.engine.dialect import dialect_for
from taskqueue.exceptions import InvalidTask

Arguments = Mapping[str, Any]
Each = Callable[..., Collection[UUID]]
Refusals = Callable[..., Mapping[UUID, str]]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One that may be done to many."""

    name: str
    each: Each
    """Does it to those of the ids that it may be done to, and gives these."""
    stored: Callable[[Arguments], dict[str, Any]]
    """The arguments as JSON has them. Raises `InvalidTask`."""
    given: Callable[[Arguments], dict[str, Any]]
    """What `each` is given, from what is stored."""
    refusals: Refusals
    """Those of the ids that cannot take what is given, whoever holds them, and why."""


def verb_named(name: str) -> Verb:
    """The verb. Raises ValueError for what is none."""
    if name in VERBS:
        return VERBS[name]
    near = nearest(str(name), VERBS)
    hint = f"Did you mean {near!r}?" if near else f"Choose from {sorted(VERBS)}."
    raise ValueError(f"{name!r} is nothing that can be done to many tasks. {hint}")


def _nothing(arguments: Arguments) -> dict[str, Any]:
    if arguments:
        raise InvalidTask(f"It takes no arguments, not {sorted(arguments)}.")
    return {}


def _only(name: str, arguments: Arguments) -> Any:
    if set(arguments) != {name}:
        raise InvalidTask(f"It takes {name!r} and nothing else, not {sorted(arguments)}.")
    return arguments[name]


def _stored_moment(arguments: Arguments) -> dict[str, Any]:
    connection = project_connection()
    now = dialect_for(connection).now(connection)
    return {"run_after": moment_of(_only("run_after", arguments), now).isoformat()}


def _given_moment(stored: Arguments) -> dict[str, Any]:
    return {"run_after": datetime.fromisoformat(stored["run_after"])}


def _stored_changes(arguments: Arguments) -> dict[str, Any]:
    changes = _only("changes", arguments)
    if not isinstance(changes, Mapping):
        raise InvalidTask(f"changes must be a mapping of terms to values, not {changes!r}.")
    if "backoff" in changes:
        raise InvalidTask("backoff cannot be changed in the background: change tasks one by one.")
    check_terms(changes)
    plain = {name: _plain(value) for name, value in changes.items()}
    try:
        return {"changes": json.loads(json.dumps(plain, allow_nan=False))}
    except (TypeError, ValueError):
        raise InvalidTask(f"changes must be such as JSON can hold, not {changes!r}.") from None


def _none(
    connection: BaseDatabaseWrapper, ids: Collection[UUID], **given: Any
) -> Mapping[UUID, str]:
    return {}


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _verb(
    name: str,
    each: Each,
    stored: Callable[[Arguments], dict[str, Any]] = _nothing,
    given: Callable[[Arguments], dict[str, Any]] = dict,
    refusals: Refusals = _none,
) -> Verb:
    return Verb(name=name, each=each, stored=stored, given=given, refusals=refusals)


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        _verb("cancel", cancel_each),
        _verb("stop", request_stop_each),
        _verb("retry", retry_each),
        _verb("run_now", run_now_each),
        _verb("reschedule", reschedule_each, _stored_moment, _given_moment),
        _verb("update", update_each, _stored_changes, refusals=refusals),
        _verb("duplicate", duplicate_each),
        _verb("delete", delete_each),
    )
}
"""By their names."""
