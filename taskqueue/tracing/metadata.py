"""The keys under which a task's metadata carries a trace."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from taskqueue.conf import get_settings

# The keys of a task's metadata: the span that enqueued it, and that of the task it was made from.
PARENT, STATE, ORIGIN = "traceparent", "tracestate", "trace_origin"
LONGEST_STATE = 512
TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


def context_in(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace context in metadata, which the project may have written itself."""
    values = {key: metadata.get(key) for key in (PARENT, STATE)}
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, str) and len(value) <= LONGEST_STATE
    }


def carrying(metadata: str, carrier: Mapping[str, str]) -> str:
    """Return metadata, as JSON text, that carries a span."""
    if not carrier:
        return metadata
    own = {} if metadata == "{}" else json.loads(metadata)
    return json.dumps({**own, **carrier}, ensure_ascii=False, separators=(",", ":"))


def carried(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metadata carries of traces."""
    return {key: metadata[key] for key in (PARENT, STATE, ORIGIN) if key in metadata}


def trace_id_of(metadata: Mapping[str, Any]) -> str:
    """Return the id of the trace that a task belongs to; empty if it carries none."""
    parent = metadata.get(PARENT)
    found = TRACEPARENT.fullmatch(parent) if isinstance(parent, str) else None
    return found[1] if found else ""


def trace_url_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the address of a task's trace, by the setting TRACE_URL."""
    pattern, trace_id = get_settings().TRACE_URL, trace_id_of(metadata)
    return pattern.replace("{trace_id}", trace_id) if pattern and trace_id else None
