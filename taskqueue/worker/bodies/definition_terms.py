"""Tell the parent which definitions may share slots, and which cannot run here.

The parent decides which orders a child gets and when they start, but does not know the project's
code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.worker import frames
from taskqueue.worker.bodies.reporting import Channel


class DefinitionTerms:
    """Tells the parent of such definitions, each as soon as it is known."""

    def __init__(self, channel: Channel, *, is_process: bool) -> None:
        self._channel = channel
        self._is_process = is_process
        # The definitions whose bodies may share a slot, as the parent has been told.
        self._told: set[str] = set()

    def tell(self, definitions: Iterable[BaseDefinition[Any, Any]]) -> None:
        """Tell the parent which of these may share a slot, and which cannot run in a thread."""
        if not self._is_process:
            self._channel.send((frames.EXCLUDED, _excluded()))
            return
        per_slot = {
            definition.name: most
            for definition in definitions
            if (most := definition.options.per_slot) > 1 and definition.name not in self._told
        }
        if per_slot:
            self._told.update(per_slot)
            self._channel.send((frames.PER_SLOT, per_slot))


def _excluded() -> list[str]:
    """Return all definitions that need a process, because earlier messages may be outdated."""
    return sorted(each.name for each in registry.all() if each.options.pool == "process")
