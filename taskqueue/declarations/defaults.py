"""The setting `TASKQUEUE["DEFAULTS"]`: options of definitions by patterns of names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.options import check_options
from taskqueue.exceptions import InvalidTask

# They describe the body, or belong to one definition.
OF_A_DEFINITION = frozenset({"name", "takes_context", "batch", "schedule"})


def defaults_for(name: str) -> dict[str, Any]:
    """Return the options in their normal form; of several patterns that match, the later wins.

    Raises `InvalidTask`, naming the pattern.
    """
    found: dict[str, Any] = {}
    for pattern, options in get_settings().DEFAULTS.items():
        if fnmatchcase(name, pattern):
            found |= check_defaults(pattern, options)
    return found


def check_defaults(pattern: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a pattern in their normal form. Raises `InvalidTask`."""
    place = f"TASKQUEUE['DEFAULTS'][{pattern!r}]"
    if refused := sorted(OF_A_DEFINITION & options.keys()):
        raise InvalidTask(f"{place}: {refused[0]} belongs to one definition: set it in @task(...).")
    try:
        return check_options(options, declared=True)
    except InvalidTask as error:
        raise InvalidTask(f"{place}: {error}") from None
