"""Fan-outs: calls that a body returns."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow, chain, fan_out, group
from taskqueue.core.workflow_states import StepKind
from tests.workflows import shop
from tests.workflows.graph_text import steps


def test_a_fan_out_is_a_map_of_calls() -> None:
    graph = fan_out(
        shop.move, [(("a", "b"), {}), (["c", "d"], {"quietly": True})], concurrency=50, tolerate=0.1
    ).build()
    (step,) = graph.steps
    assert step.kind is StepKind.MAP
    assert step.calls == (('["a","b"]', "{}"), ('["c","d"]', '{"quietly":true}'))
    assert (step.concurrency, step.tolerate) == (50, 0.1)
    assert graph.last == ("move",)


def test_signatures_are_a_group() -> None:
    assert steps(fan_out([shop.clean.s("a"), shop.clean.s("b")]).build()) == {
        "clean": 'clean*2 ["a"] ["b"]'
    }
    graph = fan_out([chain(shop.load.s("a"), shop.clean.s()), shop.note.s()]).build()
    assert steps(graph)["group"] == 'join [{"$step":"chain"},{"$step":"note"}]'


def test_a_canvas_is_one_of_its_members() -> None:
    graph = fan_out(chain(shop.load.s("a"), shop.clean.s())).build()
    assert steps(graph)["group"] == 'join [{"$step":"chain"}]'


def test_groups_and_maps_keep_their_members_and_take_other_limits() -> None:
    for canvas in (group(shop.clean.s("a")), shop.clean.map(["a"])):
        (step,) = fan_out(canvas, concurrency=3, tolerate=0.5).build().steps
        assert (step.concurrency, step.tolerate, len(step.calls)) == (3, 0.5, 1)
        (step,) = fan_out(canvas.limited(concurrency=2, tolerate=1)).build().steps
        assert (step.concurrency, step.tolerate) == (2, 1)


def test_workflows_are_children() -> None:
    graph = fan_out(shop.child, [(("monday",), {})]).build()
    assert [step.kind for step in graph.steps] == [StepKind.WORKFLOW, StepKind.JOIN]
    graph = fan_out(shop.child.s("monday")).build()
    assert [step.kind for step in graph.steps] == [StepKind.WORKFLOW, StepKind.JOIN]


def test_no_calls_are_possible() -> None:
    assert steps(fan_out(shop.clean, []).build()) == {"clean": "clean*0"}
    assert steps(fan_out([]).build()) == {"group": "join []"}


@pytest.mark.parametrize(
    ("what", "calls", "error", "reason"),
    [
        (shop.clean, None, InvalidWorkflow, "needs the calls, as pairs"),
        (shop.clean, ["a"], InvalidArguments, "Each call of fan_out must be a pair"),
        (shop.clean, [((), {})], ArgumentsDoNotBind, "missing a required argument"),
        (shop.clean, [(("a", "b"), {})], ArgumentsDoNotBind, "too many positional"),
        (shop.clean, [((object(),), {})], InvalidArguments, "Unsupported type"),
        ([shop.clean.s("a")], [(("a",), {})], InvalidWorkflow, "a list of signatures alone"),
        ([1], None, InvalidWorkflow, "made of signatures"),
        (7, None, InvalidWorkflow, "needs a list of items"),
    ],
)
def test_a_value_that_is_no_call_is_refused(what: Any, calls: Any, error: Any, reason: str) -> None:
    with pytest.raises(error, match=reason):
        fan_out(what, calls).build()
