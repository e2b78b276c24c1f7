"""The assembly of a graph: steps are added one by one, with the dependencies that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from taskqueue.core.workflow_states import After
from taskqueue.declarations.payload import dumps
from taskqueue.declarations.workflows import checking
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.declarations.workflows.graph import Edge, Step
from taskqueue.declarations.workflows.reference_data import Target, targets_in
from taskqueue.declarations.workflows.references import Condition, Reference
from taskqueue.exceptions import InvalidWorkflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of a canvas: the value that comes first, ends that it waits for, a condition.

    An end that is named in `after` is meant so: references to that step add no other.
    """

    # The JSON text of a reference; empty for none.
    first: str = ""
    after: tuple[tuple[str, After], ...] = ()
    when: Condition | None = None
    named: frozenset[str] = frozenset()

    def following(self, step: str) -> Entry:
        """Return what precedes a canvas that receives the result of a step."""
        return replace(self, first=text_of(result_of(step)), after=((step, After.SUCCEEDED),))


@dataclass(frozen=True, slots=True)
class Placed:
    """A canvas in a graph: the step that has its result, and all steps that it runs."""

    last: str
    steps: tuple[str, ...]


@dataclass
class Assembly:
    """A graph that is being made."""

    # The number of workflows that it lies within, with itself.
    depth: int = 1
    # Whose references may be used; None: nobody's.
    owner: object = None
    steps: dict[str, Step] = field(default_factory=dict)
    # In the order of their making, each once.
    edges: dict[Edge, None] = field(default_factory=dict)
    # Steps that only follow failures or ends of others: their results are not the workflow's.
    handlers: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    # The number that each wanted name has got to.
    numbers: dict[str, int] = field(default_factory=dict)

    def free_name(self, wanted: str) -> str:
        """Return the name, with a number if a step has it already."""
        name = wanted = shortened(wanted)
        number = self.numbers.get(wanted, 1)
        while name in self.taken:
            number += 1
            suffix = f"-{number}"
            name = wanted[: LONGEST_NAME - len(suffix)] + suffix
        self.numbers[wanted] = max(number - 1, 1)
        return name

    def add(self, step: Step, entry: Entry, references: Iterable[Reference] = ()) -> Placed:
        """Add a step with its dependencies. Raises `InvalidWorkflow`."""
        checking.check_name(step.name, what="step")
        if step.name in self.taken:
            raise InvalidWorkflow(
                f"Two steps are named {step.name!r}. Give one of them another name: "
                "wf.step(..., name=...)."
            )
        found = list(references)
        for reference in found:
            self.require_own(reference, step.name)
        after = [*entry.after, *_implied(found, entry.named, After.FAILED)]
        when = entry.when
        if when is not None:
            for reference in when.references:
                self.require_own(reference, step.name)
            after += _implied(when.references, entry.named, After.ENDED)
            step = replace(step, when=when.data)
        self.taken.add(step.name)
        self.steps[step.name] = step
        for upstream, end in after:
            self.edges[Edge(upstream, step.name, end)] = None
        checking.check_step_count(len(self.steps))
        checking.check_edge_count(len(self.edges))
        return Placed(step.name, (step.name,))

    def ordered_steps(self) -> tuple[Step, ...]:
        """Return the steps so that each follows all that it needs. Raises `InvalidWorkflow`."""
        for edge in self.edges:
            checking.check_known(edge.upstream, self.steps, by=f"Step {edge.downstream!r}")
        order = checking.in_order(list(self.steps), self.edges)
        return tuple(self.steps[name] for name in order)

    def require_own(self, reference: Reference, user: str) -> None:
        """Raise `InvalidWorkflow` for a reference that another builder made."""
        if reference.owner is not self.owner:
            raise InvalidWorkflow(
                f"Step {user!r} uses {reference.target}, which belongs to another workflow. Give "
                "a child workflow what it needs as arguments."
            )


def _implied(
    references: Iterable[Reference], named: frozenset[str], after_error: After
) -> list[tuple[str, After]]:
    """Return the end that the use of results or errors implies; any end if both are used."""
    ends: dict[str, After] = {}
    for reference in references:
        end = after_error if reference.target.part == "error" else After.SUCCEEDED
        for step in reference.target.steps:
            ends[step] = end if ends.get(step, end) is end else After.ENDED
    return [(step, end) for step, end in ends.items() if step not in named]


def inputs_of(*sources: str | Iterable[Reference]) -> tuple[str, ...]:
    """Return the steps that references read, each once; texts are JSON."""
    targets = [
        target
        for source in sources
        for target in (targets_in(source) if isinstance(source, str) else map(_target, source))
    ]
    return tuple(dict.fromkeys(name for target in targets for name in target.steps))


def _target(reference: Reference) -> Target:
    return reference.target


def result_of(step: str) -> Target:
    """Return the reference to the whole result of a step."""
    return Target(steps=(step,))


def text_of(target: Target) -> str:
    """Return the JSON text of a reference."""
    return dumps(target.to_json())


def shortened(name: str) -> str:
    """Return a name that a step can have."""
    return re.sub(r"[^\w.:<>()-]", "_", name)[:LONGEST_NAME] or "_"
