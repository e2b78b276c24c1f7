"""Unique keys: what the option may hold, and keys that are made of a task's arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from django.utils.crypto import salted_hmac

from taskqueue.declarations.payload import check_text, encode
from taskqueue.declarations.signatures import Signature
from taskqueue.exceptions import InvalidArguments, InvalidTask

UniqueKey = str | Callable[..., str | None] | tuple[str, ...] | Literal[True]
"""The text itself, or how it is made: by a callable, of these arguments, or of all of them."""
SALT = "taskqueue.unique_key"
LARGEST = 2**31
LONGEST_UNIQUE_KEY = 255


def check_option(name: str, value: Any) -> UniqueKey | None:
    """The option in its normal form. Raises `InvalidTask` if it can make no key."""
    if value is None or value is True:
        return value
    if callable(value):
        return cast(UniqueKey, value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return _check_argument_names(name, value)
    if not isinstance(value, str):
        raise InvalidTask(
            f"{name} must be text, names of arguments, true for all of them, or in Python a "
            f"callable, not {type(value).__name__}."
        )
    return check_unique_key(value)


def _check_argument_names(name: str, value: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(value)
    for each in names:
        if not isinstance(each, str) or not each:
            raise InvalidTask(f"{name} must be text or names of arguments, not {each!r}.")
    if not names:
        raise InvalidTask(f"{name} must name an argument; None stands for no key.")
    return tuple(dict.fromkeys(names))


def check_unique_key(value: Any) -> str:
    """The key. Raises `InvalidTask` if it is not text of 1 to 255 storable characters."""
    return _check_filled_text("unique_key", value, without="no key")


def check_scope(name: str, value: Any) -> str | None:
    """The scope. Raises `InvalidTask` as for a key."""
    if value is None:
        return None
    return _check_filled_text(name, value, without="the definition's own name")


def _check_filled_text(name: str, value: Any, *, without: str) -> str:
    try:
        check_text(value, limit=LONGEST_UNIQUE_KEY, what=name)
    except (TypeError, ValueError) as error:
        raise InvalidTask(str(error)) from None
    if not value:
        raise InvalidTask(f"{name} must not be empty; None stands for {without}.")
    return str(value)


def check_names(name: str, key: UniqueKey | list[str] | None, signature: Signature) -> None:
    """Raise `InvalidTask` if the key names an argument that the task does not have."""
    if not isinstance(key, tuple | list) or signature.keywords_name is not None:
        return
    unknown = [each for each in key if each not in signature.names]
    if unknown:
        raise InvalidTask(f"{name} has no argument {unknown[0]!r} to make its unique_key of.")


def make_key(
    key: UniqueKey,
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    stored: tuple[str, str],
) -> str | None:
    """The key of a call; `stored` are its arguments as JSON text. None if a callable makes none.

    Raises `InvalidTask`, and what a callable raises.
    """
    if isinstance(key, str):
        return key
    if callable(key):
        made = key(*args, **kwargs)
        return None if made is None else check_unique_key(made)
    values = signature.bound(json.loads(stored[0]), json.loads(stored[1])) or {}
    if key is not True:
        values = {each: value for each in key for value in _value_of(each, values, signature)}
    return _digest(values)


def _value_of(name: str, values: Mapping[str, Any], signature: Signature) -> list[Any]:
    """The value of an argument, which may stand among the further keywords; empty if not given."""
    if name in values:
        return [values[name]]
    further = values.get(signature.keywords_name or "", {})
    return [further[name]] if name in further else []


def _digest(values: Mapping[str, Any]) -> str:
    """A digest of the values. Without SECRET_KEY nobody can verify a guess of them.

    A key is shown to more people than arguments are.
    """
    text = json.dumps(_storable(values), sort_keys=True, separators=(",", ":"))
    return f"hmac:{salted_hmac(SALT, text, algorithm='sha256').hexdigest()}"


def _storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON gives them back, without defaults that JSON cannot hold.

    No argument that is given can equal such a default, so it needs no place in the key.
    """
    found = {}
    for name, value in values.items():
        try:
            found[name] = json.loads(encode(value, limit=LARGEST, what=name))
        except InvalidArguments:
            continue
    return found
