"""The builder that `@workflow` functions receive: it adds steps and dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import After, OnFailure
from taskqueue.declarations.workflows.assembly import Assembly, Entry, Placed, result_of, text_of
from taskqueue.declarations.workflows.calls import check_shapes
from taskqueue.declarations.workflows.canvas import (
    Canvas,
    StepCall,
    require_canvas,
    workflow_callback,
)
from taskqueue.declarations.workflows.checking import (
    check_concurrency,
    check_graph,
    check_name,
    check_tolerate,
)
from taskqueue.declarations.workflows.graph import Callback, CompiledCall, Graph, Step
from taskqueue.declarations.workflows.reference_data import Target
from taskqueue.declarations.workflows.references import (
    Condition,
    Ending,
    Reference,
    StepHandle,
    condition_of,
)
from taskqueue.exceptions import InvalidWorkflow

Dependency = StepHandle | Ending | str


class StepSettings(TypedDict, total=False):
    """The settings of a step besides its call."""

    name: str
    # Steps, their names, or ends of them, that it waits for besides those that it reads.
    after: Dependency | Iterable[Dependency]
    # The step is skipped if it is false.
    when: Condition | Reference
    # A call that undoes it, with its result, once the workflow has failed or been cancelled.
    compensate: StepCall
    # "fail", or "continue" with None as its result.
    on_failure: str
    # Of a map or group: how many members are sent at once, and how many may fail.
    concurrency: int
    tolerate: int | float


class Builder:
    """The steps of one workflow while its function builds them."""

    def __init__(self, name: str, *, depth: int = 1) -> None:
        self.name = name
        self.assembly = Assembly(depth=depth, owner=self)
        self.callbacks: list[Callback] = []

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"

    def step(self, canvas: Canvas, /, **settings: Unpack[StepSettings]) -> StepHandle:
        """Add a step, and return a handle that stands for its result.

        A step is named after what it calls, unless `name=` says otherwise; the parts of a canvas
        get names below it, with a dot. `StepSettings` tells the other settings. Raises
        `InvalidWorkflow`.
        """
        _check_settings(settings)
        given: Mapping[str, Any] = settings
        canvas = require_canvas(canvas).limited(
            concurrency=check_concurrency(given.get("concurrency")),
            tolerate=check_tolerate(given["tolerate"]) if "tolerate" in given else None,
        )
        name = check_name(given.get("name", canvas.default_name), what="step")
        placed = canvas.place(self.assembly, name, self._entry(name, given))
        if "compensate" in given or "on_failure" in given:
            self._set_outcome(placed, given)
        return StepHandle(self, placed.last, placed.steps)

    def on_success(self, call: StepCall) -> None:
        """Enqueue a call with the result if the workflow succeeds. Raises `InvalidWorkflow`."""
        self.callbacks.append(workflow_callback(After.SUCCEEDED, call))

    def on_failure(self, call: StepCall) -> None:
        """Enqueue a call with the error if the workflow fails. Raises `InvalidWorkflow`."""
        self.callbacks.append(workflow_callback(After.FAILED, call))

    def on_end(self, call: StepCall) -> None:
        """Enqueue a call with the result or None when the workflow ends."""
        self.callbacks.append(workflow_callback(After.ENDED, call))

    def graph(self, **more: Any) -> Graph:
        """Return the graph of its steps, with other fields of it. Raises `InvalidWorkflow`."""
        assembly = self.assembly
        if not assembly.steps:
            raise InvalidWorkflow(f"{self.name}: a workflow needs at least one step.")
        graph = Graph(
            name=self.name,
            steps=assembly.ordered_steps(),
            edges=tuple(assembly.edges),
            last=_lasting(assembly),
            callbacks=tuple(self.callbacks),
            **more,
        )
        check_graph(graph, depth=assembly.depth)
        return graph

    def _entry(self, name: str, given: Mapping[str, Any]) -> Entry:
        after = [end for each in _listed(given.get("after", ())) for end in self._ends(name, each)]
        when = given.get("when")
        return Entry(
            after=tuple(after),
            when=None if when is None else condition_of(when),
            named=frozenset(step for step, _ in after),
        )

    def _ends(self, name: str, dependency: object) -> list[tuple[str, After]]:
        """Return the ends of steps that another one waits for. Raises `InvalidWorkflow`."""
        if isinstance(dependency, str):
            return [(dependency, After.SUCCEEDED)]
        if isinstance(dependency, StepHandle):
            self.assembly.require_own(dependency, name)
            return [(dependency.name, After.SUCCEEDED)]
        if isinstance(dependency, Ending):
            of_step = Reference(dependency.owner, Target(steps=dependency.steps))
            self.assembly.require_own(of_step, name)
            return [(step, dependency.when) for step in dependency.steps]
        hint = " Use when= for a condition." if isinstance(dependency, Reference) else ""
        raise InvalidWorkflow(
            f"Step {name!r}: after= takes steps, their names, step.failed and step.ended, not "
            f"one of type {type(dependency).__name__}.{hint}"
        )

    def _set_outcome(self, placed: Placed, given: Mapping[str, Any]) -> None:
        """Set the effect of a step's failure, and its compensation. Raises `InvalidWorkflow`."""
        step = self.assembly.steps[placed.last]
        if len(placed.steps) > 1:
            raise InvalidWorkflow(
                f"{step.name!r} is several steps. Build each with wf.step(...) to give it "
                "compensate or on_failure."
            )
        if "on_failure" in given:
            step = replace(step, on_failure=_on_failure(step.name, given["on_failure"]))
        if given.get("compensate") is not None:
            step = replace(step, compensate=_compensation(step, given["compensate"]))
        self.assembly.steps[step.name] = step


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = StepSettings.__optional_keys__
    for name in settings:
        if name not in known:
            raise InvalidWorkflow(
                f"There is no setting {name!r} of a step."
                + did_you_mean(name, known, otherwise=f"There are {', '.join(sorted(known))}.")
                + " Options of its task go into .using(...)."
            )


def _listed(after: Any) -> Iterable[Any]:
    is_one = isinstance(after, str | Reference | Ending) or not isinstance(after, Iterable)
    return [after] if is_one else after


def _on_failure(name: str, value: Any) -> OnFailure:
    try:
        return OnFailure(value)
    except ValueError:
        known = [each.value for each in OnFailure]
        raise InvalidWorkflow(
            f"Step {name!r}: on_failure must be 'fail' or 'continue', not {value!r}."
            + (did_you_mean(value, known) if isinstance(value, str) else "")
        ) from None


def _compensation(step: Step, call: Any) -> CompiledCall:
    """Return the call that undoes a step. Raises `InvalidWorkflow`."""
    if not isinstance(call, StepCall) or call.callbacks or call.references:
        raise InvalidWorkflow(
            f"Step {step.name!r}: compensate= takes one call of a task, such as drop.s(), with "
            "arguments that are known; the result of the step comes first."
        )
    first = "" if call.is_immutable else text_of(result_of(step.name))
    check_shapes(f"{step.name}, compensate", call.callee, [call.shape], first=bool(first))
    compiled = call.compiled(first)
    if compiled.definition is None:
        raise InvalidWorkflow(
            f"Step {step.name!r}: {compiled.name} is a workflow, and compensate= takes a task."
        )
    return compiled


def _lasting(assembly: Assembly) -> tuple[str, ...]:
    """Return the steps whose results are the workflow's: those that no other follows.

    Steps that only deal with failures, and callbacks of steps, do not count.
    """
    waits: dict[str, list[tuple[str, After]]] = {name: [] for name in assembly.steps}
    for edge in assembly.edges:
        waits[edge.downstream].append((edge.upstream, edge.when))
    handlers = set(assembly.handlers)
    for step in assembly.ordered_steps():
        before = waits[step.name]
        if before and all(end is After.FAILED or name in handlers for name, end in before):
            handlers.add(step.name)
    followed = {edge.upstream for edge in assembly.edges if edge.downstream not in handlers}
    return tuple(name for name in assembly.steps if name not in handlers and name not in followed)
