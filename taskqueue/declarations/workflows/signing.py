"""The methods that turn definitions into steps, and the return value that fans out.

Every process that declares a task imports this, so the code that makes canvases is imported later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from taskqueue.core.workflow_states import Spread

if TYPE_CHECKING:
    from taskqueue.declarations.workflows.calls import Callee
    from taskqueue.declarations.workflows.canvas import Canvas, StepCall
    from taskqueue.declarations.workflows.graph import Graph
    from taskqueue.declarations.workflows.groups import Group, Map, MapOver
    from taskqueue.declarations.workflows.references import Reference


class ResultBefore:
    """A placeholder for the previous step's result as the items of a map."""

    def __repr__(self) -> str:
        return "RESULT_BEFORE"


RESULT_BEFORE = ResultBefore()
Items: TypeAlias = "Iterable[Any] | Reference | ResultBefore"


@cache
def _signature() -> Callable[..., StepCall]:
    """Return the function that makes calls, imported once: doing it per call took a third."""
    from taskqueue.declarations.workflows.signatures import signature

    return signature


class Signing:
    """Makes signatures, for steps of workflows."""

    def callee(self) -> Callee:
        """Return the callee of a step."""
        return self  # type: ignore[return-value]  # `require_callee` looks at it.

    def s(self, /, *args: Any, **kwargs: Any) -> StepCall:
        """Return a call for a workflow. A previous step's result becomes its first argument.

        Raises `ArgumentsDoNotBind` and `InvalidArguments` as an enqueue does.
        """
        return _signature()(self.callee(), args, kwargs)

    def si(self, /, *args: Any, **kwargs: Any) -> StepCall:
        """Return a call for a workflow that does not receive a previous step's result."""
        return _signature()(self.callee(), args, kwargs, is_immutable=True)

    def map(self, items: Items = RESULT_BEFORE, /) -> Group | Map | MapOver:
        """Return parallel calls, one for each item, or for each item of the previous result.

        Items may be the result of another step. Raises as `s` does, and `InvalidWorkflow`.
        """
        return self._mapped(items, Spread.MAP)

    def starmap(self, items: Items = RESULT_BEFORE, /) -> Group | Map | MapOver:
        """Return a call for each item; an item is the list of the call's arguments."""
        return self._mapped(items, Spread.STARMAP)

    def chunks(self, items: Items, size: int, /) -> Group | Map | MapOver:
        """Return a call for each `size` items, which it receives as a list."""
        return self._mapped(items, Spread.CHUNKS, size=size)

    def _mapped(self, items: Items, spread: Spread, *, size: int = 1) -> Group | Map | MapOver:
        from taskqueue.declarations.workflows.signatures import mapped

        return mapped(self.callee(), items, spread, size=size)


@dataclass(frozen=True, eq=False)
class FanOut:
    """Calls that a body returns, to be run as members of its step."""

    canvas: Canvas

    def build(self, *, depth: int = 1) -> Graph:
        """Return the graph of the calls. Raises `InvalidWorkflow`."""
        return self.canvas.build(name="fan_out", depth=depth)
