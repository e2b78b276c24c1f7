"""Errors for arguments that do not match their annotations."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.argument_kinds import Misfit
from taskqueue.exceptions import UnsupportedType, WrongType

LONGEST = 60
_IN_JSON = (str, bytes, int, float, type(None), Mapping, Sequence)
_WORDS = (bytes, float, bool, type(None))


class _Short(reprlib.Repr):
    """Shows the beginning of a value, or only its type if JSON cannot represent it."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = LONGEST
        self.maxlevel = 2

    def repr_instance(self, x: Any, level: int) -> str:
        if type(x) not in _WORDS:
            return f"<{type(x).__qualname__}>"
        text = repr(x[:LONGEST] if isinstance(x, bytes) else x)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def misfit(error: Misfit, *, task: str, name: str, what: object, is_secret: bool) -> WrongType:
    """Return what an enqueue raises.

    Of a sensitive argument it shows neither a value nor a key, only the type that was given.
    """
    # A keyword that `**kwargs` takes is known by its own name.
    name = what if isinstance(what, str) else name
    path: tuple[object, ...] = ("args" if isinstance(what, int) else "kwargs", what)
    if is_secret:
        place = "[…]" if error.path else ""
    else:
        place = "".join(f"[{step!r}]" for step in error.path)
        path += tuple(error.path)
    inside = _(", at {place},", place=place) if place else ""
    wanted = _(
        "the argument {name!r}{inside} must be {wanted}",
        name=name, inside=inside, wanted=error.wanted,
    )  # fmt: skip
    if isinstance(error.value, _IN_JSON):
        given = _given(error.value, is_secret=is_secret)
        text = _("{task}: {wanted}, not {given}.", task=task, wanted=wanted, given=given)
        if error.reason and not is_secret:
            text = _(
                "{task}: {wanted}, not {given}: {reason}",
                task=task, wanted=wanted, given=given, reason=error.reason,
            )  # fmt: skip
        return WrongType(text, path=path)
    text = _(
        "Unsupported type: {type} at {place}. {task}: {wanted}.",
        type=type(error.value), place=f"{path[0]}[{what!r}]{place}", task=task, wanted=wanted,
    )  # fmt: skip
    return UnsupportedType(text, path=path)


def without_key(error: ObjectDoesNotExist, *, task: str, name: str) -> ObjectDoesNotExist:
    """Return such an error of a sensitive argument, which does not tell the key of the row."""
    return type(error)(
        f"{task}: the row that the argument {name!r} names does not exist (its key is sensitive, "
        "so not shown). It may have been deleted since the task was enqueued."
    )


def _given(value: object, *, is_secret: bool) -> str:
    if value is None:
        return "None"
    shown = _("sensitive, so not shown") if is_secret else _Short().repr(value)
    return _("{type} ({shown})", type=type(value).__name__, shown=shown)
