"""What a failed assertion says: what was expected, and what was enqueued in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from taskqueue.declarations.redaction import ShownArguments, redacted, redacted_for
from taskqueue.models import Task
from taskqueue.testing.looking import Pattern

MOST = 20
LONGEST = 200
"""Characters of one task's arguments."""


def failure(pattern: Pattern, *, expected: str, found: int, seen: Sequence[Task]) -> str:
    """Why an assertion failed. Values of sensitive arguments are redacted."""
    return (
        f"Expected {expected} {wanted(pattern)}; there {'was' if found == 1 else 'were'} {found}. "
        + listing(seen)
    )


def wanted(pattern: Pattern) -> str:
    """What is expected of a task."""
    text = "task" if pattern.definition is None else pattern.definition.name
    if pattern.has_arguments:
        shown = ShownArguments(*pattern.call)
        if pattern.definition is not None:
            shown = redacted_for(pattern.definition, *shown)
        text += _call(shown.args, shown.kwargs)
    others = [
        f"{each.name}={value!r}"
        for each in fields(pattern)
        if each.name not in ("definition", "args", "kwargs")
        and (value := getattr(pattern, each.name)) is not None
    ]
    return f"{text} with {', '.join(others)}" if others else text


def listing(tasks: Sequence[Task]) -> str:
    """What was enqueued, a line a task."""
    if not tasks:
        return "Nothing was enqueued."
    lines = [f"  {_line(task)}" for task in tasks[:MOST]]
    if len(tasks) > MOST:
        lines.append(f"  … and {len(tasks) - MOST} more")
    return "\n".join(["Enqueued were:", *lines])


def _line(task: Task) -> str:
    shown = redacted(task.name, task.args, task.kwargs)
    call = "(…)" if shown is None else _call(shown.args, shown.kwargs)
    parts = [f"queue_name={task.queue_name!r}"]
    if task.priority:
        parts.append(f"priority={task.priority}")
    if task.run_after != task.enqueued_at:
        parts.append(f"run_after={task.run_after.isoformat()}")
    if task.unique_key is not None:
        parts.append(f"unique_key={task.unique_key!r}")
    return f"{task.name}{call} with {', '.join(parts)}: {task.status}"


def _call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    named = [f"{name}={value!r}" for name, value in kwargs.items()]
    text = ", ".join([*map(repr, args), *named])
    return f"({text})" if len(text) <= LONGEST else f"({text[:LONGEST]}…)"
