"""The limits of a definition as data, to compare them with those of later code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.limits import Concurrency, Rate
from taskqueue.declarations.placement import Data, declared
from taskqueue.models import Task


def plan_of(definition: BaseDefinition[Any, Any]) -> Data | None:
    """Return the limits by which tasks of a definition are placed; None if it has none.

    The numbers of limits are left out, because they apply to waiting tasks in any case. A callable
    is represented by its name, so a change of its code goes unnoticed.
    """
    limits = definition.limits
    if limits is None or not limits.has_any:
        return None
    own: list[Concurrency | Rate] = [*limits.concurrency, *limits.rate]
    named = [(declared(limit, definition.name), limit.key) for limit in own]
    return {
        "limits": sorted([each["name"], each["per"], _as_data(key)] for each, key in named),
        "cost": _as_data(limits.cost),
        "fair": limits.fair and [_as_data(limits.fair.key), _as_data(limits.fair.weight)],
        "sequence": limits.sequence
        and [
            limits.sequence.name or definition.name,
            _as_data(limits.sequence.key),
            limits.sequence.on_failure,
        ],
        "tags": list(limits.requires),
        "sensitive": sorted(limits.sensitive),
    }


def is_placed_by(plan: Mapping[str, Any], task: Task) -> bool:
    """Return whether a task has the limits that its definition had then.

    A task with limits of its own call keeps them. A callable may have returned None as the key.
    """
    data = task.limits or {}
    names = {name: _may_lack(key) for name, _, key in plan["limits"]}
    found = {each["name"] for each in data.get("limits", ())}
    lacking = set(names) - found
    fair, sequence = plan["fair"], plan["sequence"]
    has_sequence = data.get("sequence", {}).get("name") == (sequence and sequence[0])
    return (
        found <= set(names)
        and all(names[name] for name in lacking)
        and (("tenant" in data) == bool(fair) or (fair is not None and _may_lack(fair[0])))
        and (has_sequence or ("sequence" not in data and sequence and _may_lack(sequence[1])))
        and data.get("tags", []) == plan["tags"]
    )


def _as_data(value: Any) -> Any:
    """Return a key, a cost or a weight as data."""
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return {"callable": f"{getattr(value, '__module__', '')}.{name}"}
    return list(value) if isinstance(value, tuple) else value


def _may_lack(key: Any) -> bool:
    return isinstance(key, dict)
