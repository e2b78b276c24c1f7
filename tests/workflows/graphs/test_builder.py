"""`@workflow`: steps by name, what they wait for, and what they are given."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from taskqueue import InvalidWorkflow, chain, group
from taskqueue.core.workflow_states import OnFailure, Spread
from taskqueue.declarations.workflows.graph import Edge, Graph
from taskqueue.workflows import Builder
from tests.workflows import shop
from tests.workflows.graph_text import call, edges, steps


def built(body: Callable[[Builder], object]) -> Graph:
    """Return the graph that a function builds."""
    builder = Builder("made")
    body(builder)
    return builder.graph()


def test_using_a_step_as_an_argument_is_the_dependency() -> None:
    graph = shop.nightly.build("monday", "secret")
    assert steps(graph) == {
        "load": 'load["monday","secret"]',
        "clean": 'clean[] for map {"$step":"load","path":["files"]}',
        "summarise": 'summarise[{"$step":"clean"}]',
        "publish": 'publish[{"$step":"summarise"}]',
        "page": 'page[{"$step":"summarise","part":"error"}]',
        "child": 'child["monday"]',
    }
    assert edges(graph) == {
        "load -> clean",
        "clean -> summarise",
        "summarise -> publish",
        "summarise -failed-> page",
        "clean -> child",
        "publish -> child",
    }


def test_steps_carry_their_options() -> None:
    graph = shop.nightly.build("monday", "secret")
    clean, stats = graph.by_name["clean"], graph.by_name["summarise"]
    assert (clean.concurrency, clean.tolerate) == (50, 0.01)
    assert clean.source is not None
    assert clean.source.spread is Spread.MAP
    assert stats.on_failure is OnFailure.FAIL
    assert stats.compensate is not None
    assert call(stats.compensate) == 'drop[{"$step":"summarise"}]'
    assert graph.by_name["publish"].when == {
        "op": ">",
        "of": [{"$step": "summarise", "path": ["rows"]}, 0],
    }


def test_a_graph_carries_what_is_said_of_the_workflow() -> None:
    graph = shop.nightly.using(unique_key="nightly", fail_fast=True).build("monday", token="x")
    assert graph.name == "tests.workflows.shop.nightly"
    assert (graph.args, graph.kwargs) == ('["monday"]', '{"token":"x"}')
    assert graph.deadline == timedelta(hours=6)
    assert graph.sensitive == {"token"}
    assert (graph.unique_key, graph.fail_fast, graph.on_duplicate) == ("nightly", True, "return")


def test_the_result_is_that_of_the_last_step_without_those_for_failures() -> None:
    assert shop.nightly.build("monday", "x").last == ("child",)

    def body(wf: Builder) -> None:
        one = wf.step(shop.load.s("monday"))
        wf.step(shop.clean.s(one), name="left")
        wf.step(shop.clean.s(one), name="right")
        handler = wf.step(shop.page.s(one.error))
        wf.step(shop.note.s(), after=handler)

    assert built(body).last == ("left", "right")


def test_a_workflow_of_handlers_alone_has_the_result_of_what_they_handle() -> None:
    def body(wf: Builder) -> None:
        one = wf.step(shop.load.s("monday"))
        wf.step(shop.page.s(one.error))

    assert built(body).last == ("load",)


def test_callbacks_of_steps_are_not_the_result() -> None:
    def body(wf: Builder) -> None:
        called = shop.load.s("monday").on_success(shop.publish.s()).on_end(shop.note.si())
        wf.step(called)

    assert built(body).last == ("load",)


def test_the_parts_of_a_canvas_have_names_below_its_own() -> None:
    def body(wf: Builder) -> None:
        prepared = wf.step(chain(shop.load.s("a"), shop.clean.s()), name="prepare")
        wf.step(group(shop.note.s(), shop.load.s("b") | shop.clean.s()), after=prepared)

    graph = built(body)
    assert set(steps(graph)) == {
        "prepare.load",
        "prepare",
        "group.note",
        "group.chain.load",
        "group.chain",
        "group",
    }
    assert "prepare -> group.note" in edges(graph)
    assert "prepare -> group.chain.load" in edges(graph)
    assert "prepare -> group.chain" not in edges(graph)


def test_a_canvas_fails_where_one_of_its_steps_does() -> None:
    def body(wf: Builder) -> None:
        prepared = wf.step(shop.load.s("a") | shop.clean.s(), name="prepare")
        wf.step(shop.page.s(prepared.error))
        wf.step(shop.note.s(), after=prepared.failed)
        wf.step(shop.publish.s(1), after=prepared.ended)

    graph = built(body)
    error = '{"$step":["prepare.load","prepare"],"part":"error"}'
    assert steps(graph)["page"] == f"page[{error}]"
    assert edges(graph) == {
        "prepare.load -> prepare",
        "prepare.load -failed-> page",
        "prepare -failed-> page",
        "prepare.load -failed-> note",
        "prepare -failed-> note",
        "prepare -ended-> publish",
    }


def test_the_use_of_result_and_error_waits_for_any_end() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.collect.s(loaded, loaded.error, loaded["x"]))

    assert edges(built(body)) == {"load -ended-> collect"}


def test_the_condition_of_a_canvas_holds_for_all_of_its_parts() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.note.s() | shop.clean.si("b"), name="both", when=loaded["rows"] > 0)

    graph = built(body)
    assert graph.by_name["both.note"].when == graph.by_name["both"].when != None  # noqa: E711
    assert {"load -> both.note", "load -> both"} < edges(graph)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (lambda load: load, "load -> note"),
        (lambda load: "load", "load -> note"),
        (lambda load: [load.failed], "load -failed-> note"),
        (lambda load: (load.ended,), "load -ended-> note"),
    ],
)
def test_after_takes_steps_names_and_ends(after: Any, expected: str) -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.note.s(), after=after(loaded))

    assert edges(built(body)) == {expected}


def test_a_name_may_be_that_of_a_later_step() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.publish.s(1), after="load")
        wf.step(shop.load.s("a"))

    graph = built(body)
    assert [step.name for step in graph.steps] == ["load", "publish"]


def test_an_after_option_overrides_the_edge_of_an_argument() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.collect.s(loaded), after=loaded.ended)
        wf.step(shop.note.s(), when=loaded["ok"], after=loaded.failed)

    assert edges(built(body)) == {"load -ended-> collect", "load -failed-> note"}


def test_the_use_of_an_error_waits_for_the_failure_and_its_condition_for_any_end() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.page.s(loaded.error["message"]))
        wf.step(shop.note.s(), when=loaded.error.is_null())

    assert edges(built(body)) == {"load -failed-> page", "load -ended-> note"}


def test_conditions_are_combined_as_data() -> None:
    found: list[Any] = []

    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        one = (loaded["rows"] >= 1) & ~loaded["files"].is_null()
        when = one | loaded["kind"].is_in(["x"]) | (loaded["files"].length() != 3) | loaded["ok"]
        found.append(wf.step(shop.note.s(), when=when))

    graph = built(body)
    condition = graph.by_name["note"].when
    assert condition is not None
    assert condition["op"] == "or"
    assert condition["of"][1] == {"op": "is_true", "of": [{"$step": "load", "path": ["ok"]}]}
    assert json.loads(json.dumps(condition)) == condition


@pytest.mark.parametrize(
    "use",
    [
        lambda x: bool(x > 1),
        lambda x: 1 < x < 3,
        lambda x: not x,
        lambda x: bool(x),
        lambda x: list(x),
        lambda x: len(x),
        lambda x: 1 in x,
        lambda x: hash(x),
        lambda x: x[1.5],
        lambda x: x[True],
    ],
)
def test_a_result_is_not_known_while_the_workflow_is_built(use: Any) -> None:
    def body(wf: Builder) -> None:
        use(wf.step(shop.load.s("a"))["rows"])

    with pytest.raises((InvalidWorkflow, TypeError)):
        built(body)


def test_keys_that_look_like_references_stay_the_projects_own() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.collect.s({"$step": "x", "$$": 1}, [loaded]))
        wf.step(shop.child.s("a", files={"$step": "x"}))

    graph = built(body)
    assert steps(graph)["collect"] == 'collect[{"$$step":"x","$$$":1},[{"$step":"load"}]]'
    inner = graph.by_name["child"].graph
    assert inner is not None
    assert steps(inner)["collect"] == 'collect[{"$step":"load"},{"$$step":"x"}]'


def test_lazy_lists_and_lengths_are_arguments_too() -> None:
    def body(wf: Builder) -> None:
        parts = wf.step(shop.clean.map(["a"]))
        wf.step(shop.collect.s(parts.lazy(), parts.length()))

    assert steps(built(body))["collect"] == (
        'collect[{"$step":"clean","lazy":true},{"$step":"clean","length":true}]'
    )


def test_callbacks_of_a_workflow_are_declared_in_it() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.note.s())
        wf.on_success(shop.publish.s())
        wf.on_failure(shop.page.s())
        wf.on_end(shop.note.si())

    assert [(each.when.value, call(each.call)) for each in built(body).callbacks] == [
        ("succeeded", 'publish[{"$workflow":"result"}]'),
        ("failed", 'page[{"$workflow":"error"}]'),
        ("ended", "note[]"),
    ]


def test_edges_are_kept_once() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.collect.s(loaded, loaded["x"], y=loaded), after=loaded, when=loaded["x"] == 1)

    assert built(body).edges == (Edge("load", "collect"),)
