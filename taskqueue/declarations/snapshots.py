"""The options that a worker needs, as they stood when the task was enqueued.

A snapshot holds only what differs from the defaults. A key that this version does not know means
that a newer one enqueued the task: it is left to a worker that knows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from taskqueue.core.retries import Backoff, class_path, from_snapshot
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import SNAPSHOT, Options

# That a task belongs to a step of a workflow, and finds values for references in its arguments.
STEP = "step"
# Added for the tasks of a schedule, for the body to know.
RUN = ("schedule", "nominal_at")
KEYS = frozenset({*(option.name for option in SNAPSHOT), *RUN, STEP})
EMPTY = "{}"


def is_storable(backoff: object) -> bool:
    """Return whether the policy can be stored with a task; a callable cannot."""
    return backoff is None or isinstance(backoff, Backoff)


def dump(options: Options) -> str:
    """Return the snapshot of the options, as JSON text."""
    snapshot = {}
    for option in SNAPSHOT:
        value = getattr(options, option.name)
        if value != option.default and (option.name != "backoff" or is_storable(value)):
            snapshot[option.name] = option_to_json(value)
    return json.dumps(snapshot, separators=(",", ":")) if snapshot else EMPTY


@lru_cache(maxsize=256)
def loaded(text: str) -> Any:
    """Return the snapshot in a JSON text. Tasks of one definition share it: do not change it."""
    return json.loads(text)


@lru_cache(maxsize=256)
def unknown_in_text(text: str) -> str:
    """Return the option in a JSON text that only a newer version knows; empty if there is none."""
    return unknown_in(loaded(text))


def unknown_in(snapshot: Mapping[str, Any]) -> str:
    """Return the option that only a newer version knows; empty if there is none."""
    for name in sorted(snapshot.keys() - KEYS):
        return repr(name)
    try:
        from_snapshot(snapshot.get("backoff"))
    except (KeyError, TypeError, ValueError):
        return f"backoff={snapshot['backoff']!r}"
    return ""


def retries(snapshot: Mapping[str, Any], exception_class: type[BaseException]) -> bool:
    """Return whether a failure of that class may be retried, by the names of classes.

    Names, not classes: the process that decides need not be able to import them.
    """
    paths = {class_path(base) for base in exception_class.__mro__}
    if not paths.isdisjoint(snapshot.get("give_up_on", ())):
        return False
    retry_for = snapshot.get("retry_for")
    return retry_for is None or not paths.isdisjoint(retry_for)


def delay(snapshot: Mapping[str, Any], failures: int) -> float:
    """Return the seconds until the next attempt, after this many failures."""
    return from_snapshot(snapshot.get("backoff")).delay(failures)
