"""The description of a filter, from which all faces offer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from taskqueue.engine.control.conditions import Condition


class FilterKind(Enum):
    """The values that a filter takes."""

    LIST = "several texts, of which one fits"
    WORDS = "several texts, all of which fit"
    TEXTS = "one text, or several of which one fits"
    PATHS = "texts by path"
    NUMBER = "whole number"
    MOMENT = "time"
    FLAG = "true or false"


LIST, WORDS, TEXTS, PATHS, NUMBER, MOMENT, FLAG = FilterKind
# The value of a filter that is not given, where it is not None.
ABSENT: dict[FilterKind, Any] = {WORDS: (), TEXTS: "", FLAG: False}


@dataclass(frozen=True)
class Described:
    """How one filter is applied and offered; empty names: a face does not offer it."""

    kind: FilterKind
    help: str = ""
    condition: Condition | None = None
    qualifier: str = ""  # The word before the colon in a search.
    parameter: str = ""  # The parameter of the REST API's list.
    flag: str = ""  # The flag of the CLI.
    syntax: str = ""  # What its qualifier takes besides plain values.


def described(
    kind: FilterKind, help: str = "", condition: Condition | None = None, **names: str
) -> Any:
    """Return a field of `TaskFilter` that holds its own description."""
    metadata = {"filter": Described(kind, help, condition, **names)}
    if kind is PATHS:
        return field(default_factory=dict, metadata=metadata)
    return field(default=ABSENT.get(kind), metadata=metadata)
