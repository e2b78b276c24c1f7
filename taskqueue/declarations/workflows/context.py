"""The context of a workflow: JSON values by key, which its steps read and update."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from taskqueue.declarations.payload import encode
from taskqueue.declarations.workflows.bounds import LARGEST_CONTEXT
from taskqueue.exceptions import InvalidArguments, InvalidWorkflow


def merged(context: Mapping[str, Any], updates: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the context with the updates, a later one before an earlier one, by their keys.

    Raises `InvalidWorkflow` if it becomes too large, or cannot be stored.
    """
    whole = dict(context)
    for update in updates:
        whole.update(update)
    try:
        normal: dict[str, Any] = json.loads(encode(whole, limit=LARGEST_CONTEXT, what="context"))
    except InvalidArguments as error:
        raise InvalidWorkflow(f"The context of the workflow is refused: {error}") from None
    return normal
