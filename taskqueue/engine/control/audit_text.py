"""Describe in the audit which tasks were selected, and what was changed.

Everybody who may view the audit can read an entry, even after the task is gone. So an entry only
contains what the permission to view tasks shows: no values of sensitive arguments, none of
arguments of an unknown definition, and none of searches for arguments or workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskqueue.core.naming import counted
from taskqueue.declarations.call_differences import Difference, cut, value_differences
from taskqueue.engine.control.calls import AnyDefinition
from taskqueue.engine.control.filters import TaskFilter

# Parts of a filter that only people with another permission may see.
HIDDEN = {"arguments": "arguments", "worker": "workers"}


def choice_text(which: TaskFilter, query: str) -> str:
    """Return a description of the chosen tasks."""
    hidden = [what for part, what in HIDDEN.items() if part in which.given]
    if hidden:
        return f"by a {'search for' if query else 'filter of'} {' and '.join(hidden)}"
    if query:
        return query
    return counted(len(which.ids), "chosen task") if which.ids is not None else "by a filter"


def told_arguments(
    differences: Sequence[Difference], definition: AnyDefinition | None
) -> list[str]:
    """Return descriptions of the changed arguments."""
    if definition is None:
        return ["arguments changed"]
    return [f"arguments: {each}" for each in differences]


def told_metadata(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return a description of the changed metadata."""
    return cut("; ".join(map(str, value_differences("metadata", dict(before), dict(now)))))
