"""The payloads of calls: ids, arguments as JSON text, keys and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_bytes, uuid7_hexes
from taskqueue.declarations.arguments import Call, checked_call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.payload import IsSecret, encode_many
from taskqueue.engine.payloads import BLOCK, Columns, LatePayloads, Payload

# To encode these runs no code of the project, and nobody can change them.
PLAIN = frozenset({NoneType, bool, float, int, str})


def payload_of(definition: BaseDefinition[Any, Any], id: str, args: Any, kwargs: Any) -> Payload:
    """Return one task's payload, with what limits it."""
    texts = definition.encode(args, kwargs)
    if definition.limits is None:
        return Payload(id, *texts)
    return Payload(id, *texts, definition.place(args, kwargs, stored=texts[:2]))


def payloads_of(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call], task_ids: Sequence[str] | None
) -> Sequence[Payload]:
    """Return the payloads of many calls, which are read once. Those of plain ones are made late.

    Raises what is wrong with the first call that is wrong; late payloads do so when they are made.
    """
    if definition.limits is not None:
        checked = [(tuple(args), kwargs) for args, kwargs in map(checked_call, calls)]
        ids = uuid7_hexes(len(checked)) if task_ids is None else task_ids
        return [
            payload_of(definition, id, args, kwargs)
            for id, (args, kwargs) in zip(ids, checked, strict=True)
        ]
    if (every := _all_plain(definition, calls)) is not None:
        return _late(definition, every, task_ids)
    rest = map(checked_call, calls)
    plain, other = _plain_calls(definition, rest)
    if other is None:
        return _late(definition, plain, task_ids)
    definition_encodes: Callable[[Any, Any], tuple[str, str, str | None]] = definition.encode
    encoded = [definition_encodes(args, {}) for args in plain]
    encoded.append(definition_encodes(tuple(other[0]), other[1]))
    encoded += [definition_encodes(tuple(args), kwargs) for args, kwargs in rest]
    ids = uuid7_hexes(len(encoded)) if task_ids is None else task_ids
    return [Payload(id, *texts) for id, texts in zip(ids, encoded, strict=True)]


def _all_plain(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call]
) -> Sequence[tuple[Any, ...]] | None:
    """Return the arguments of a list of calls, if each is seen to be plain; None otherwise.

    It looks at them as `_plain_calls` does, in a few steps for all.
    """
    if type(calls) is not list or set(map(type, calls)) != {tuple} or set(map(len, calls)) != {2}:
        return None
    many: list[tuple[Any, ...]] = [args for args, _ in calls]
    named = [kwargs for _, kwargs in calls]
    if set(map(type, many)) != {tuple} or set(map(type, named)) != {dict} or any(named):
        return None
    if len(set(map(len, many))) > 1:
        return None
    columns = [[type(args[place]) for args in many] for place in range(len(many[0]))]
    examples = dict(zip(zip(*columns, strict=True), many, strict=True)) if columns else {(): ()}
    return many if all(_is_plain(definition, *each) for each in examples.items()) else None


def _plain_calls(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call]
) -> tuple[list[tuple[Any, ...]], Call | None]:
    """Return the arguments of the first calls that are plain, and the one after them, if any."""
    plain: list[tuple[Any, ...]] = []
    known: set[tuple[type, ...]] = set()
    try:
        for call in calls:
            args = tuple(call[0])
            types = tuple(map(type, args))
            if call[1] or types not in known:
                if call[1] or not _is_plain(definition, types, args):
                    return plain, (args, call[1])
                known.add(types)
            plain.append(args)
    except Exception as failure:
        error = failure
    else:
        return plain, None
    # An earlier call may be wrong itself. Not from within `except`: frames hold the arguments.
    for args in plain:
        definition.encode(args, {})
    raise error


def _is_plain(
    definition: BaseDefinition[Any, Any], types: tuple[type, ...], args: tuple[Any, ...]
) -> bool:
    """Return whether positional arguments of these types are stored as they are."""
    if definition.options.has_key or not PLAIN.issuperset(types):
        return False
    exact = definition.signature.exact_calls
    if types not in exact:
        try:
            definition.encode(args, {})  # It learns whether they are.
        except Exception:  # Raised again in its turn, after what is wrong with earlier calls.
            return False
    return types in exact


def _late(
    definition: BaseDefinition[Any, Any],
    calls: Sequence[tuple[Any, ...]],
    task_ids: Sequence[str] | None,
) -> Sequence[Payload]:
    late = LatePayloads(len(calls), _blocks(calls, task_ids, definition.signature.is_secret))
    return late if len(calls) > BLOCK else list(late)


def _blocks(
    calls: Sequence[tuple[Any, ...]], task_ids: Sequence[str] | None, is_secret: IsSecret
) -> Iterator[Columns]:
    limit = get_settings().MAX_ARGUMENTS
    for start in range(0, len(calls), BLOCK):
        block = calls[start : start + BLOCK]
        if task_ids is None:
            ids = uuid7_bytes(len(block))
        else:
            ids = bytes.fromhex("".join(task_ids[start : start + BLOCK]))
        texts = encode_many(block, limit=limit, what="args", is_secret=is_secret)
        yield Columns(ids, texts)
