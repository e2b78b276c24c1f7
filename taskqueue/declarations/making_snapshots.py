"""Making snapshots of options, and finding keys in them that only a newer version knows.

Such a key means that a newer version enqueued the task, which is left to a worker that knows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from taskqueue.core.retries import from_snapshot
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import SNAPSHOT, Options
from taskqueue.declarations.snapshots import EMPTY, STEP, is_storable, loaded, misfit

# Added for the tasks of a schedule, for the body to know.
RUN = ("schedule", "nominal_at")
KEYS = frozenset({*(option.name for option in SNAPSHOT), *RUN, STEP})


def dump(options: Options) -> str:
    """Return the snapshot of the options, as JSON text."""
    snapshot = {}
    for option in SNAPSHOT:
        value = getattr(options, option.name)
        if value != option.default and (option.name != "backoff" or is_storable(value)):
            snapshot[option.name] = option_to_json(value)
    return json.dumps(snapshot, separators=(",", ":")) if snapshot else EMPTY


@lru_cache(maxsize=256)
def unknown_in_text(text: str) -> str:
    """Return the option in a JSON text that only a newer version knows; empty if there is none."""
    return unknown_in(loaded(text))


def unknown_in(snapshot: Mapping[str, Any]) -> str:
    """Return the option that only a newer version knows; empty if there is none."""
    if found := misfit(snapshot):
        return found
    for name in sorted(snapshot.keys() - KEYS):
        return repr(name)
    try:
        from_snapshot(snapshot.get("backoff"))
    except (KeyError, TypeError, ValueError):
        return f"backoff={snapshot['backoff']!r}"
    return ""
