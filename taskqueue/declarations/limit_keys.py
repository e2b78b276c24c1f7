"""Keys by which calls count together for limits, debounces, throttles and capacities.

A key is text. It is shown to everybody who may see the task, so a key that is made from a sensitive
argument is stored as a hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.declarations.arguments import digest_of, json_values, values_of
from taskqueue.declarations.payload import check_text
from taskqueue.declarations.signature import Signature
from taskqueue.exceptions import InvalidTask

# Names of arguments, a callable that gets the arguments, or None: one key for all calls.
LimitKey = str | tuple[str, ...] | Callable[..., str | None] | None
LONGEST_KEY = 255
# A longer one is stored as a hash: what it is a key of, and a place, stand in the column too.
LONGEST_SHOWN = 235


@dataclass(frozen=True)
class MadeKey:
    """The key of one call; `text` is None if all calls of the definition count together."""

    text: str | None


def check_limit_key(what: str, key: object) -> LimitKey:
    """Return the key in its normal form. Raises `InvalidTask`."""
    if key is None or callable(key):
        return key
    if isinstance(key, str):
        names: tuple[object, ...] = (key,)
    elif isinstance(key, Iterable) and not isinstance(key, bytes | Mapping):
        names = tuple(key)
    else:
        names = ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidTask(_(
            "{what} must be the name of an argument, a tuple of names, a callable that gets the "
            "arguments and returns text, or None, not {key!r}.",
            what=what, key=key,
        ))  # fmt: skip
    return key if isinstance(key, str) else tuple(dict.fromkeys(map(str, names)))


def check_key_names(what: str, key: LimitKey, signature: Signature, *, name: str) -> None:
    """Raise `InvalidTask` if the key names an argument that the task does not have."""
    if key is None or callable(key) or signature.keywords_name is not None:
        return
    names = (key,) if isinstance(key, str) else key
    unknown = [each for each in names if each not in signature.names]
    if unknown:
        raise InvalidTask(_(
            "{what} of {name} names the argument {unknown!r}, which the task does not have.",
            what=what, name=name, unknown=unknown[0],
        ))  # fmt: skip


def key_of_call(
    what: str,
    key: LimitKey,
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    stored: tuple[str, str],
    sensitive: Collection[str],
) -> MadeKey | None:
    """Return the key of a call, or None if its callable says that the call is not limited.

    `stored` are the arguments as JSON text. One value is its text, several are a JSON array. Raises
    `InvalidTask`, and what a callable raises.
    """
    if key is None:
        return MadeKey(None)
    if callable(key):
        made = key(*args, **kwargs)
        if made is None:
            return None
        text = _checked(what, made)
        # It gets all arguments, and nobody knows which of them it used.
        return MadeKey(digest_of({"": text}) if sensitive else _shortened(text))
    names = (key,) if isinstance(key, str) else key
    values = signature.bound(json.loads(stored[0]), json.loads(stored[1])) or {}
    used = json_values(
        {name: value for name in names for value in values_of(name, values, signature)}
    )
    if set(sensitive) & {*names, *_taken_in(names, signature, sensitive)}:
        return MadeKey(digest_of(used))
    ordered = [used.get(name) for name in names]
    value: Any = ordered[0] if isinstance(key, str) else ordered
    if not isinstance(value, str):
        value = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return MadeKey(_shortened(value))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else digest_of({"": text})


def _taken_in(
    names: Sequence[str], signature: Signature, sensitive: Collection[str]
) -> Iterable[str]:
    """Return sensitive names that may be within `**kwargs`, if the key is made from it."""
    return sensitive if signature.keywords_name in names else ()


def _checked(what: str, made: Any) -> str:
    try:
        text = check_text(made, limit=LONGEST_KEY, what=f"The key that {what} makes")
    except (TypeError, ValueError) as error:
        raise InvalidTask(why(error)) from None
    return text
