"""Compiled workflows as JSON, for schedules and for pages that show them.

Default values are left out. Arguments remain JSON text, because a database that normalises JSON
would change their numbers. Calls of one definition share its stored options.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from taskqueue.core.workflow_states import After, OnFailure, Spread, StepKind
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.workflows.bounds import LARGEST_GRAPH
from taskqueue.declarations.workflows.graph import (
    FORMAT,
    Arguments,
    Callback,
    CompiledCall,
    Edge,
    Graph,
    Part,
    Source,
    Step,
)
from taskqueue.exceptions import InvalidWorkflow

# The options of a definition as they are stored with its tasks.
OptionsOf = Callable[[BaseDefinition[Any, Any]], Mapping[str, Any]]
Json = dict[str, Any]
_PLAIN = ("format", "name", "version", "args", "kwargs", "fail_fast", "unique_key", "on_duplicate")
_DEFAULTS = {"version": "", "args": "[]", "kwargs": "{}", "on_duplicate": "return"}
_STEP_PLAIN = ("name", "value", "when", "concurrency", "tolerate")


def graph_to_json(graph: Graph, options_of: OptionsOf) -> Json:
    """Return the graph as JSON. Raises `InvalidWorkflow` if it is larger than may be stored."""
    writer = _Writer(options_of)
    stored = {**writer.graph(graph), "options": writer.options}
    size = len(json.dumps(stored, separators=(",", ":")))
    if size > LARGEST_GRAPH:
        raise InvalidWorkflow(
            f"{graph.name}: the workflow is {size:,} bytes of JSON, and at most {LARGEST_GRAPH:,} "
            "can be stored. Let a first step find the calls, and return fan_out(...) from it."
        )
    return stored


def graph_from_json(stored: Mapping[str, Any]) -> Graph:
    """Return the graph that was stored. Raises `InvalidWorkflow` if this version cannot read it."""
    if (found := stored.get("format")) != FORMAT:
        raise InvalidWorkflow(
            f"The workflow is stored in format {found!r}, and this version reads {FORMAT}."
        )
    try:
        return _Reader(stored["options"]).graph(stored)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidWorkflow(
            f"The stored workflow cannot be read: {type(error).__name__}: {error}"
        ) from None


def _brief(values: Json) -> Json:
    """Return the values without those that say nothing."""
    return {
        name: value
        for name, value in values.items()
        if value not in (None, (), [], 0, _DEFAULTS.get(name, ""))
    }


class _Writer:
    def __init__(self, options_of: OptionsOf) -> None:
        self.options: list[Mapping[str, Any]] = []
        self._options_of = options_of
        # The places of options that were met, by the definition or mapping that they are of.
        self._places: dict[int, int] = {}

    def graph(self, graph: Graph) -> Json:
        return _brief(
            {name: getattr(graph, name) for name in _PLAIN}
            | {
                "steps": [self._step(step) for step in graph.steps],
                "edges": [[e.upstream, e.downstream, e.when.value] for e in graph.edges],
                "last": list(graph.last),
                "sensitive": sorted(graph.sensitive),
                "callbacks": [[c.when.value, self._call(c.call)] for c in graph.callbacks],
            }
        ) | _times(graph)

    def _step(self, step: Step) -> Json:
        source = step.source
        return _brief(
            {name: getattr(step, name) for name in _STEP_PLAIN}
            | {
                "kind": step.kind.value,
                "call": step.call and self._call(step.call),
                "calls": [list(call) for call in step.calls],
                "source": source and [source.items, source.spread.value, source.size],
                "parts": [self._part(part) for part in step.parts],
                "graph": step.graph and self.graph(step.graph),
                "inputs": list(step.inputs),
                "on_failure": None if step.on_failure is OnFailure.FAIL else step.on_failure.value,
                "compensate": step.compensate and self._call(step.compensate),
            }
        )

    def _part(self, part: Part) -> list[Json]:
        own = self._call(part.call)
        return [own] if part.graph is None else [own, self.graph(part.graph)]

    def _call(self, call: CompiledCall) -> Json:
        stored = _brief({"name": call.name, "args": call.args, "kwargs": call.kwargs})
        shared: object = call.definition if call.options is None else call.options
        if shared is None:  # Of a child workflow, whose graph tells all.
            return stored
        place = self._places.get(id(shared))
        if place is None:
            place = self._places[id(shared)] = self._add(call)
        return stored | {"options": place}

    def _add(self, call: CompiledCall) -> int:
        options = call.options
        if options is None:
            assert call.definition is not None
            options = self._options_of(call.definition)
        if options in self.options:
            return self.options.index(options)
        self.options.append(options)
        return len(self.options) - 1


def _times(graph: Graph) -> Json:
    """Return the times of a graph; also 0 seconds say something."""
    times: Json = {}
    if isinstance(graph.deadline, datetime):
        times["deadline_at"] = graph.deadline.isoformat()
    elif graph.deadline is not None:
        times["deadline_seconds"] = graph.deadline.total_seconds()
    if graph.retention is not None:
        times["retention_seconds"] = graph.retention.total_seconds()
    return times


class _Reader:
    def __init__(self, options: list[Mapping[str, Any]]) -> None:
        self._options = options

    def graph(self, stored: Mapping[str, Any]) -> Graph:
        retention = stored.get("retention_seconds")
        return Graph(
            **{name: stored[name] for name in _PLAIN if name in stored},
            steps=tuple(self._step(step) for step in stored["steps"]),
            edges=tuple(Edge(one, other, After(when)) for one, other, when in _of(stored, "edges")),
            last=tuple(_of(stored, "last")),
            sensitive=frozenset(_of(stored, "sensitive")),
            deadline=_deadline(stored),
            retention=None if retention is None else timedelta(seconds=retention),
            callbacks=tuple(
                Callback(After(when), self._call(call)) for when, call in _of(stored, "callbacks")
            ),
        )

    def _step(self, stored: Mapping[str, Any]) -> Step:
        call, compensate, source = (stored.get(name) for name in ("call", "compensate", "source"))
        graph = stored.get("graph")
        return Step(
            **{name: stored[name] for name in _STEP_PLAIN if name in stored},
            kind=StepKind(stored["kind"]),
            call=None if call is None else self._call(call),
            calls=tuple(_arguments(call) for call in _of(stored, "calls")),
            source=None if source is None else Source(
                items=source[0], spread=Spread(source[1]), size=source[2]
            ),
            parts=tuple(self._part(*part) for part in _of(stored, "parts")),
            graph=None if graph is None else self.graph(graph),
            inputs=tuple(_of(stored, "inputs")),
            on_failure=OnFailure(stored.get("on_failure", OnFailure.FAIL)),
            compensate=None if compensate is None else self._call(compensate),
        )  # fmt: skip

    def _part(self, call: Mapping[str, Any], graph: Mapping[str, Any] | None = None) -> Part:
        return Part(call=self._call(call), graph=None if graph is None else self.graph(graph))

    def _call(self, stored: Mapping[str, Any]) -> CompiledCall:
        place = stored.get("options")
        return CompiledCall(
            name=stored["name"],
            args=stored.get("args", "[]"),
            kwargs=stored.get("kwargs", "{}"),
            options=None if place is None else self._options[place],
        )


def _of(stored: Mapping[str, Any], name: str) -> list[Any]:
    found = stored.get(name, [])
    if not isinstance(found, list):
        raise TypeError(f"{name} is not a list")
    return found


def _arguments(stored: list[str]) -> Arguments:
    args, kwargs = stored
    return args, kwargs


def _deadline(stored: Mapping[str, Any]) -> timedelta | datetime | None:
    if (seconds := stored.get("deadline_seconds")) is not None:
        return timedelta(seconds=seconds)
    at = stored.get("deadline_at")
    return None if at is None else datetime.fromisoformat(at)
