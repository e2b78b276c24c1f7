"""Questions of the engine about a running graph: calls of maps, results, and tolerated failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import InvalidWorkflow
from taskqueue.declarations.workflows.bounds import MAX_CALLS
from taskqueue.declarations.workflows.graph import Arguments, Step
from taskqueue.declarations.workflows.reference_data import Target, resolve
from taskqueue.declarations.workflows.resolution import (
    allowed_failures,
    calls_of,
    return_value,
)
from taskqueue.workflows import Builder
from tests.workflows import shop

LIMIT = 1000


def calls_over(canvas: Any, items: Any) -> list[Arguments]:
    """Return the calls of a map over a result."""
    builder = Builder("made")
    loaded = builder.step(shop.load.s("monday"))
    step: Step = builder.graph().by_name["load"]
    handle = builder.step(canvas(loaded))
    step = builder.graph().by_name[handle.name]
    assert step.call is not None
    assert step.source is not None
    return calls_of(step.call, step.source, lambda target: items, limit=LIMIT)


def test_a_map_has_a_call_for_each_item() -> None:
    assert calls_over(lambda load: shop.clean.map(load), ["a", None, {"b": 1}]) == [
        ('["a"]', "{}"), ("[null]", "{}"), ('[{"b":1}]', "{}"),
    ]  # fmt: skip
    assert calls_over(lambda load: shop.clean.map(load["files"]), {"files": [1]}) == [("[1]", "{}")]


def test_a_starmap_has_the_arguments_that_its_items_are() -> None:
    assert calls_over(lambda load: shop.move.starmap(load), [["a", "b"], []]) == [
        ('["a","b"]', "{}"), ("[]", "{}"),
    ]  # fmt: skip


def test_chunks_are_lists() -> None:
    assert calls_over(lambda load: shop.index.chunks(load, 2), [1, 2, 3]) == [
        ("[[1,2]]", "{}"), ("[[3]]", "{}"),
    ]  # fmt: skip


def test_no_items_are_no_calls() -> None:
    for canvas in (shop.clean.map, shop.move.starmap, lambda load: shop.index.chunks(load, 9)):
        assert calls_over(canvas, []) == []


def test_the_result_before_stays_a_reference_in_each_call() -> None:
    calls = calls_over(lambda load: shop.note.s() | shop.collect.map(load), ["a"])
    assert calls == [('[{"$step":"chain.note"},"a"]', "{}")]


@given(
    st.lists(st.dictionaries(st.sampled_from(["$step", "$$", "a"]), st.integers(-9, 9)), max_size=4)
)
def test_items_that_look_like_references_stay_what_they_are(items: list[Any]) -> None:
    calls = calls_over(lambda load: shop.clean.map(load), items)
    assert [resolve(args, lambda target: None) for args, _ in calls] == [[item] for item in items]


@pytest.mark.parametrize(
    ("canvas", "items", "reason"),
    [
        (shop.clean.map, None, "a map needs a list of items, .* is None"),
        (shop.clean.map, "abc", "is of type str"),
        (shop.clean.map, {"a": 1}, "is of type dict"),
        (shop.move.starmap, [["a"], "ab"], "item 1 is of type str"),
        (shop.clean.map, ["x" * LIMIT], "the arguments of call 0 must be at most 1,000 bytes"),
        (shop.clean.map, range(MAX_CALLS + 1), "at most 100,000 calls"),
    ],
)
def test_results_that_make_no_calls_are_refused(canvas: Any, items: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        calls_over(canvas, items)


def test_a_workflow_returns_the_result_of_its_last_step_or_of_several_by_name() -> None:
    def read(target: Target) -> Any:
        return f"of {target.steps[0]}"

    assert return_value(("a",), read) == "of a"
    assert return_value(("a", "b"), read) == {"a": "of a", "b": "of b"}


@pytest.mark.parametrize(
    ("tolerate", "members", "allowed"),
    [(0, 10, 0), (3, 10, 3), (30, 10, 30), (0.01, 99, 0), (0.01, 100, 1), (0.29, 100, 29),
     (0.5, 3, 1), (0.0, 10, 0), (0.1, 0, 0)],
)  # fmt: skip
def test_tolerated_failures_are_a_number_or_a_share(
    tolerate: int | float, members: int, allowed: int
) -> None:
    assert allowed_failures(tolerate, members) == allowed


@given(st.integers(1, 999), st.integers(1, 100_000))
def test_a_share_is_counted_as_written(thousandths: int, members: int) -> None:
    assert allowed_failures(thousandths / 1000, members) == thousandths * members // 1000


def test_large_maps_stay_one_compact_step() -> None:
    graph = shop.publish.map(range(MAX_CALLS)).build()
    (step,) = graph.steps
    assert len(step.calls) == graph.members == MAX_CALLS
    assert step.calls[-1] == (json.dumps([MAX_CALLS - 1]), "{}")
