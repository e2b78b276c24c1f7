"""Edit a waiting task: its arguments, deadline, expiry and metadata.

These values are read when an attempt starts. They are changed under the lock of the task's row,
and not while it runs, so that no attempt sees only a part of a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.refusals import joined
from taskqueue.core.refusals import refusal as _
from taskqueue.core.retries import seconds_of
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.declarations.call_differences import Call, Difference, differences_of
from taskqueue.engine.control.calls import AnyDefinition, given_call, placed_by, texts_of
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.holders import arguments_of
from taskqueue.engine.payloads import Payload
from taskqueue.engine.specs import later
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Task
from taskqueue.tracing.metadata import carried

# The parts that an edit changes besides the arguments, with their columns.
EDITED_COLUMNS = {"deadline": "deadline_at", "expires_after": "expires_at", "metadata": "metadata"}
# The prefix of keys that are digests of arguments.
DIGEST = "hmac:"
OF_WORKFLOW = _(
    "belongs to a workflow, and its arguments may refer to results there. Cancel the workflow, and "
    "enqueue it with the arguments that it is to have."
)


def require_waiting(task: Task, parts: Sequence[str]) -> None:
    """Raise `TransitionRefused` unless the locked task waits."""
    if parts and task.status not in PENDING:
        named = joined(parts, _(" and "))
        raise TransitionRefused(_(
            "Task {task} is {status}. Its {named} can only be changed while it waits.",
            task=task.id, status=task.status, named=named,
        ))  # fmt: skip


def edited_columns(
    connection: BaseDatabaseWrapper, task: Task, checked: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns that these checked options change. Raises `InvalidTask`."""
    columns: dict[str, Any] = {}
    if "metadata" in checked:
        # It contains the identity of the enqueueing span, which people neither see nor write.
        columns["metadata"] = dict(checked["metadata"]) | carried(task.metadata)
    if checked.keys().isdisjoint(("deadline", "expires_after")):
        return columns
    if task.status == TaskStatus.BLOCKED:
        raise InvalidTask(_(
            "Task {task} waits for other steps of its workflow, and gets its deadline and its "
            "expiry when it is released.",
            task=task.id,
        ))  # fmt: skip
    now = dialect_for(connection).now(connection)
    if "deadline" in checked:
        columns["deadline_at"] = _moment(checked["deadline"], now)
    if (span := checked.get("expires_after")) is not None and task.started_at is not None:
        raise InvalidTask(_(
            "Task {task} has been started before: it does not expire any more.", task=task.id
        ))  # fmt: skip
    if "expires_after" in checked:
        columns["expires_at"] = None if span is None else later(now, seconds_of(span))
    return columns


def _moment(value: Any, now: datetime) -> datetime | None:
    return now + value if isinstance(value, timedelta) else value


def edited_call(
    task: Task,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    *,
    queue_name: str,
) -> tuple[dict[str, Any], list[Difference], AnyDefinition | None]:
    """Return the columns that a locked task gets with other arguments, and the differences.

    If one is None, the task's own are kept. Raises `ArgumentsDoNotBind` and `InvalidArguments`, as
    an enqueue does, and `InvalidTask` if the arguments depend on something else.
    """
    if task.step_id is not None:
        raise TransitionRefused(_(
            "Task {task_id} {reason}", task_id=task.id, reason=OF_WORKFLOW
        ))  # fmt: skip
    if task.successes:
        raise TransitionRefused(_(
            "Task {task} has succeeded on {successes} of its workers with the arguments that it "
            "has.",
            task=task.id, successes=task.successes,
        ))  # fmt: skip
    old = Call(task.args, task.kwargs)
    call, definition = given_call(task, args, kwargs)
    texts = texts_of(call, definition)
    new = Call(*map(json.loads, texts))
    differences = differences_of(old, new, definition=definition)
    if (list(old.args), dict(old.kwargs)) == (list(new.args), dict(new.kwargs)):
        return {}, [], definition
    _check_key(task, definition, old, call)
    placement = placed_by(definition, call, queue_name=queue_name, texts=texts)
    columns = arguments_of(Payload(task.id.hex, *texts, None, placement), task)
    if placement is None and task.limits is not None:
        if _has_keys(task.limits) and (definition is None or definition.limits is None):
            raise InvalidTask(_(
                "The limits of task {task} may be made of its arguments, and nothing here tells "
                "how. Cancel it, and enqueue another.",
                task=task.id,
            ))  # fmt: skip
        if definition is None or definition.limits is None:
            columns = {name: columns[name] for name in ("args", "kwargs")}
    return columns, differences, definition


def _check_key(task: Task, definition: AnyDefinition | None, old: Call, new: Call) -> None:
    """Refuse arguments that would give another unique key than the one that the task holds."""
    if not task.holds_unique_key:
        return
    options = None if definition is None else definition.options
    is_made = options is not None and (
        options.admission is not None
        or (options.unique_key is not None and not isinstance(options.unique_key, str))
    )
    if definition is not None and not is_made and not (task.unique_key or "").startswith(DIGEST):
        return
    if is_made and definition is not None:
        try:
            if definition.encode(*_plain(old))[2] == definition.encode(*_plain(new))[2]:
                return
        except Exception:  # noqa: S110  (of the project's callable: it has made no equal keys)
            pass
    raise InvalidTask(_(
        "Task {task} holds a unique key that is made of its arguments: these might make another "
        "one. Cancel it, and enqueue another.",
        task=task.id,
    ))  # fmt: skip


def _plain(call: Call) -> tuple[list[Any], dict[str, Any]]:
    return list(call.args), dict(call.kwargs)


def _has_keys(limits: Mapping[str, Any]) -> bool:
    """Return whether limits, as data, have keys, which may have been made from arguments."""
    keys = [each["key"] for each in limits.get("limits", ())]
    return any(keys) or "tenant" in limits or "sequence" in limits
