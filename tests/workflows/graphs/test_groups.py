"""Groups, maps and chords: calls side by side."""

from __future__ import annotations

import json
from typing import Any

import pytest

from taskqueue import (
    InvalidWorkflow,
    chord,
    group,
)
from taskqueue.core.workflow_states import StepKind
from taskqueue.declarations.workflows.bounds import MAX_NESTING
from taskqueue.workflows import Builder
from tests.workflows import shop
from tests.workflows.graph_text import edges, steps


def test_a_group_of_one_definition_is_one_step() -> None:
    graph = group([shop.clean.s("a"), shop.clean.s("b")], concurrency=50, tolerate=10).build()
    (step,) = graph.steps
    assert steps(graph) == {"clean": 'clean*2 ["a"] ["b"]'}
    assert (step.kind, step.concurrency, step.tolerate) == (StepKind.MAP, 50, 10)
    assert graph.members == 2


def test_a_chord_gives_its_callback_the_list_of_results() -> None:
    graph = chord([shop.clean.s("a"), shop.clean.s("b")], shop.summarise.s()).build()
    assert steps(graph)["summarise"] == 'summarise[{"$step":"clean"}]'
    assert edges(graph) == {"clean -> summarise"}
    assert steps(graph) == steps(
        (group(shop.clean.s("a"), shop.clean.s("b")) | shop.summarise.s()).build()
    )


def test_each_member_of_a_group_is_given_the_result_before() -> None:
    graph = (shop.load.s("monday") | group(shop.add.s(1), shop.add.si(2, 3))).build()
    assert steps(graph)["add"] == 'add*2 [{"$step":"load"},1] [2,3]'
    assert edges(graph) == {"load -> add"}


def test_a_group_before_a_group_is_one_dependency() -> None:
    graph = (shop.clean.map("abc"[i] for i in range(3)) | shop.collect.map([1, 2])).build()
    assert edges(graph) == {"clean -> collect"}
    assert steps(graph)["collect"] == 'collect*2 [{"$step":"clean"},1] [{"$step":"clean"},2]'


def test_a_group_of_unlike_calls_is_joined_by_a_step() -> None:
    graph = group(shop.clean.s("a"), shop.load.s("monday") | shop.publish.s()).build()
    assert steps(graph) == {
        "clean": 'clean["a"]',
        "chain.load": 'load["monday"]',
        "chain": 'publish[{"$step":"chain.load"}]',
        "group": 'join [{"$step":"clean"},{"$step":"chain"}]',
    }
    assert edges(graph) == {"chain.load -> chain", "clean -> group", "chain -> group"}
    assert graph.last == ("group",)


def test_calls_with_callbacks_of_their_own_are_steps_of_their_own() -> None:
    graph = group(shop.clean.s("a").on_failure(shop.page.s()), shop.clean.s("b")).build()
    assert steps(graph) == {
        "clean": 'clean["a"]',
        "clean.page": 'page[{"$step":"clean","part":"error"}]',
        "clean-2": 'clean["b"]',
        "group": 'join [{"$step":"clean"},{"$step":"clean-2"}]',
    }


def test_groups_within_groups_give_lists_within_lists() -> None:
    graph = group(shop.note.s(), group(shop.clean.s("a"), shop.clean.s("b"))).build()
    assert steps(graph)["group"] == 'join [{"$step":"note"},{"$step":"clean"}]'


def test_an_empty_group_has_an_empty_result() -> None:
    assert steps(group([]).build()) == {"group": "join []"}
    assert steps(shop.clean.map([]).build()) == {"clean": "clean*0"}
    graph = (shop.load.s("monday") | group([]) | shop.summarise.s()).build()
    assert edges(graph) == {"load -> group", "group -> summarise"}


def test_maps_call_one_definition_for_each_item() -> None:
    assert steps(shop.clean.map(["a", "b"]).build()) == {"clean": 'clean*2 ["a"] ["b"]'}
    assert steps(shop.move.starmap([("a", "b"), ["c", "d"]]).build()) == {
        "move": 'move*2 ["a","b"] ["c","d"]'
    }
    assert steps(shop.index.chunks(range(5), 2).build()) == {
        "index": "index*3 [[0,1]] [[2,3]] [[4]]"
    }


def test_a_map_without_items_takes_the_list_before() -> None:
    graph = (shop.load.s("monday") | shop.clean.map() | shop.summarise.s()).build()
    assert steps(graph)["clean"] == 'clean[] for map {"$step":"load"}'
    assert graph.by_name["clean"].members is None
    with pytest.raises(InvalidWorkflow, match=r"Give it items: \.map\(ids\)"):
        shop.clean.map().build()


def test_a_map_of_a_workflow_has_a_child_for_each_item() -> None:
    graph = shop.child.map(["monday", "tuesday"]).build()
    kinds = [step.kind for step in graph.steps]
    assert kinds == [StepKind.WORKFLOW, StepKind.WORKFLOW, StepKind.JOIN]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: shop.clean.map("abc"), "needs a list of items"),
        (lambda: shop.clean.map(3), "needs a list of items"),
        (lambda: shop.clean.map({"a": 1}), "needs a list of items"),
        (lambda: shop.move.starmap(["ab"]), "list or tuple of arguments"),
        (lambda: shop.index.chunks([1], 0), "1 or more"),
        (lambda: shop.index.chunks([1], True), "1 or more"),
        (lambda: shop.index.chunks("abc", 2), "needs a list of items"),
        (lambda: group([], concurrency=0), "concurrency must be"),
        (lambda: group([], concurrency=True), "concurrency must be"),
        (lambda: group([], tolerate=-1), "tolerate must be"),
        (lambda: group([], tolerate=1.5), "tolerate must be"),
        (lambda: group([], tolerate=float("nan")), "tolerate must be"),
    ],
)
def test_maps_and_groups_refuse_what_makes_no_members(make: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        make()


def test_unlike_calls_with_limits_are_members_of_one_step() -> None:
    parts = [shop.note.si(), shop.clean.s(), shop.add.s(1) | shop.publish.s(), shop.child.s()]
    graph = (shop.load.s("monday") | group(parts, concurrency=2, tolerate=0.5)).build()
    step = graph.by_name["group"]
    assert (step.kind, step.concurrency, step.tolerate) == (StepKind.MAP, 2, 0.5)
    assert (step.members, graph.members, step.inputs) == (4, 7, ("load",))
    assert steps(graph)["group"] == (
        '[note[], clean[{"$step":"load"}], chain(add)[{"$step":"load"}] workflow, '
        'child[{"$step":"load"}] workflow]'
    )
    assert edges(graph) == {"load -> group"}
    chained = step.parts[2].graph
    assert chained is not None
    assert steps(chained) == {
        "add": 'add[{"$argument":0},1]',
        "publish": 'publish[{"$step":"add"}]',
    }


def test_a_part_reads_steps_outside_by_its_own_arguments() -> None:
    wf = Builder("outer")
    loaded = wf.step(shop.load.s("monday"))
    part = shop.clean.s(loaded["path"]) | shop.collect.s(
        loaded["path"], {"$step": 1.5}, rows=loaded["rows"].length(), inner=shop.__name__
    )
    wf.step(group(part, shop.note.s()), concurrency=1, when=loaded["rows"] > 0)
    graph = wf.graph()
    assert edges(graph) == {"load -> group"}
    inner = graph.by_name["group"].parts[0].graph
    assert inner is not None
    assert json.loads(inner.args) == [
        {"$step": "load", "path": ["path"]},
        {"$step": "load", "path": ["rows"], "length": True},
    ]
    assert steps(inner) == {
        "clean": 'clean[{"$argument":0}]',
        "collect": 'collect[{"$step":"clean"},{"$argument":0},{"$$step":1.5}]'
        '{"rows":{"$argument":1},"inner":"tests.workflows.shop"}',
    }


@pytest.mark.parametrize("limits", [{"concurrency": 1}, {"tolerate": 1}])
def test_unlike_calls_with_limits_are_checked(limits: Any) -> None:
    def limited(*parts: Any) -> Any:
        return group(*parts, shop.note.s(), **limits)

    with pytest.raises(InvalidWorkflow, match="unique_key"):
        limited(shop.sync.s(1)).build()
    with pytest.raises(InvalidWorkflow, match="leave it out"):
        (shop.load.s("monday") | limited(shop.clean.s("a"))).build()
    with pytest.raises(InvalidWorkflow, match="nested at most"):
        limited(shop.endless.s()).build()
    other = Builder("other")
    loaded = other.step(shop.load.s("monday"))
    with pytest.raises(InvalidWorkflow, match="belongs to another workflow"):
        limited(shop.clean.s(loaded) | shop.note.si()).build()


def test_deep_nesting_is_refused_before_it_is_built() -> None:
    def grouped(canvas: Any) -> Any:
        return group(canvas, shop.note.si())

    for deeper in (grouped, shop.note.si().on_success):
        canvas: Any = shop.note.si()
        for _ in range(MAX_NESTING - 1):
            canvas = deeper(canvas)
        with pytest.raises(InvalidWorkflow, match=f"at most {MAX_NESTING} deep"):
            deeper(canvas)


def test_long_chains_are_no_nesting() -> None:
    canvas: Any = shop.note.si()
    for _ in range(500):
        canvas = canvas | shop.note.si()
    assert len(canvas.build().steps) == 501
