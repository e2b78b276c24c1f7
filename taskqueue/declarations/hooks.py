"""Functions of higher layers that declarations call, set by the app during Django's setup."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskqueue.declarations.definition import BaseDefinition
    from taskqueue.declarations.workflows.graph import Graph

# The function that writes a graph.
ENQUEUE_GRAPH: list[Callable[[Graph], Any]] = []
# Functions that are asked, in turn, for definitions that are not registered.
FINDERS: list[Callable[[str], BaseDefinition[Any, Any] | None]] = []
