"""The payloads of calls: ids, arguments as JSON text, keys, and what limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.arguments import Call, checked_call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.engine.payloads import Payload


def payload_of(definition: BaseDefinition[Any, Any], id: str, args: Any, kwargs: Any) -> Payload:
    """Return one task's payload, with what limits it."""
    texts = definition.encode(args, kwargs)
    if definition.limits is None:
        return Payload(id, *texts)
    return Payload(id, *texts, definition.place(args, kwargs, stored=texts[:2]))


def payloads_of(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call], task_ids: Sequence[str] | None
) -> Sequence[Payload]:
    """Return the payloads of many calls, in their order."""
    if definition.limits is not None:
        checked = [(tuple(args), kwargs) for args, kwargs in map(checked_call, calls)]
        ids = uuid7_hexes(len(checked)) if task_ids is None else task_ids
        return [
            payload_of(definition, id, args, kwargs)
            for id, (args, kwargs) in zip(ids, checked, strict=True)
        ]
    encode: Callable[[Any, Any], tuple[str, str, str | None]] = definition.encode
    encoded = [encode(tuple(args), kwargs) for args, kwargs in map(checked_call, calls)]
    ids = uuid7_hexes(len(encoded)) if task_ids is None else task_ids
    return [Payload(id, *texts) for id, texts in zip(ids, encoded, strict=True)]
