"""The arguments of a call, and unique keys that are made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Literal

from django.utils.crypto import salted_hmac

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.declarations.payload import check_text, encode
from taskqueue.declarations.signature import Signature
from taskqueue.exceptions import InvalidArguments, InvalidTask

# The key itself, a callable that makes it, or the arguments that it is made of (True: all).
UniqueKey = str | Callable[..., str | None] | tuple[str, ...] | Literal[True]
# Positional and keyword arguments.
Call = tuple[Iterable[Any], Mapping[str, Any]]
SALT = "taskqueue.unique_key"
LARGEST = 2**31
LONGEST_UNIQUE_KEY = 255


def checked_call(call: Call, *, what: str = "enqueue_many") -> Call:
    """Return the call. Raises `InvalidArguments` unless it is a pair of arguments."""
    if type(call) is tuple and tuple(map(type, call)) == (tuple, dict):
        return call
    if isinstance(call, tuple | Sequence) and len(call) == 2:
        args, kwargs = call
        if isinstance(kwargs, dict | Mapping) and not isinstance(args, str | bytes | dict):
            return call
    # Not its text: arguments may be secret.
    size = f" of {len(call)}" if isinstance(call, Sized) else ""
    raise InvalidArguments(_(
        "Each call of {what} must be a pair of positional and keyword arguments, such as ((42,), "
        "{{}}); this one is of type {type}{size}.",
        what=what, type=type(call).__name__, size=size,
    ))  # fmt: skip


def check_unique_key(value: Any) -> str:
    """Return the key. Raises `InvalidTask` if it is not text of 1 to 255 storable characters."""
    return _check_filled_text("unique_key", value, without=_("no key"))


def check_scope(name: str, value: Any) -> str:
    """Return the scope. Raises `InvalidTask` as for a key."""
    return _check_filled_text(name, value, without=_("the definition's own name"))


def _check_filled_text(name: str, value: Any, *, without: str) -> str:
    try:
        check_text(value, limit=LONGEST_UNIQUE_KEY, what=name)
    except (TypeError, ValueError) as error:
        raise InvalidTask(why(error)) from None
    if not value:
        raise InvalidTask(_(
            "{name} must not be empty. Use None for {without}.", name=name, without=without
        ))  # fmt: skip
    return str(value)


def check_names(name: str, key: UniqueKey | list[str] | None, signature: Signature) -> None:
    """Raise `InvalidTask` if the key names an argument that the task does not have."""
    if not isinstance(key, tuple | list) or signature.keywords_name is not None:
        return
    unknown = [item for item in key if item not in signature.names]
    if unknown:
        raise InvalidTask(_(
            "unique_key of {name} names the argument {unknown!r}, which the task does not have.",
            name=name, unknown=unknown[0],
        ))  # fmt: skip


def make_key(
    key: UniqueKey,
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    stored: tuple[str, str],
) -> str | None:
    """Return the key of a call, or None; `stored` are its arguments as JSON text.

    Raises `InvalidTask`, and what a callable raises.
    """
    if isinstance(key, str):
        return key
    if callable(key):
        made = key(*args, **kwargs)
        return None if made is None else check_unique_key(made)
    values = signature.bound(json.loads(stored[0]), json.loads(stored[1])) or {}
    if key is not True:
        values = {name: value for name in key for value in values_of(name, values, signature)}
    return digest_of(values)


def values_of(name: str, values: Mapping[str, Any], signature: Signature) -> list[Any]:
    """Return the value of an argument, even one in `**kwargs`; empty if it is not given."""
    if name in values:
        return [values[name]]
    further = values.get(signature.keywords_name or "", {})
    return [further[name]] if name in further else []


def digest_of(values: Mapping[str, Any]) -> str:
    """Return a digest of the values. Without SECRET_KEY nobody can verify a guess of them.

    A key is shown to more people than arguments are.
    """
    text = json.dumps(json_values(values), sort_keys=True, separators=(",", ":"))
    return f"hmac:{salted_hmac(SALT, text, algorithm='sha256').hexdigest()}"


def json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as JSON stores them, without defaults that JSON cannot represent.

    No argument that is given can equal such a default, so it needs no place in the key.
    """
    found = {}
    for name, value in values.items():
        try:
            found[name] = json.loads(encode(value, limit=LARGEST, what=name))
        except InvalidArguments:
            continue
    return found
