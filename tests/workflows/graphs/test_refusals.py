"""Graphs that cannot work are refused before anything is written, with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskqueue import InvalidWorkflow, group, workflow
from taskqueue.core.workflow_states import StepKind
from taskqueue.declarations.workflows import bounds, checking, context
from taskqueue.declarations.workflows.graph import Edge, Graph, Step
from taskqueue.workflows import Builder
from tests.workflows import shop

Body = Callable[[Builder], object]


def refused(body: Body, reason: str) -> None:
    """Build a workflow, and expect to be told why it cannot be."""

    def build() -> Graph:
        builder = Builder("made")
        body(builder)
        return builder.graph()

    with pytest.raises(InvalidWorkflow, match=reason):
        build()


def test_a_cycle_is_named() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.note.s(), name="before")
        wf.step(shop.note.s(), name="a", after=["c", "before"])
        wf.step(shop.note.s(), name="b", after="a")
        wf.step(shop.note.s(), name="c", after="b")
        wf.step(shop.note.s(), name="behind", after="c")

    refused(body, r"The steps form a cycle: (a → b → c → a|b → c → a → b|c → a → b → c)\.")


def test_a_long_cycle_is_named_in_brief() -> None:
    def body(wf: Builder) -> None:
        for number in range(5000):
            wf.step(shop.note.s(), name=f"n{number}", after=f"n{(number + 1) % 5000}")

    refused(body, r"^The steps form a cycle: (n\d+ → ){10}… 4,981 more …( → n\d+){10}\.$")


def test_a_step_that_waits_for_itself_is_refused() -> None:
    refused(lambda wf: wf.step(shop.note.s(), after="note"), "note → note")


def test_an_unknown_name_suggests_the_nearest() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.publish.s(1))
        wf.step(shop.note.s(), after="publsh")

    refused(body, r"Step 'note' refers to the step 'publsh', .* Did you mean 'publish'\?")


def test_two_steps_of_one_name_are_refused() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.note.s())
        wf.step(shop.note.s())

    refused(body, r"Two steps are named 'note'\. .* wf\.step\(\.\.\., name=\.\.\.\)")


def test_arguments_that_do_not_bind_are_refused() -> None:
    refused(lambda wf: wf.step(shop.add.s(1)), "Step 'add': .*missing a required argument: 'y'")


def test_steps_of_another_builder_are_refused() -> None:
    other = Builder("other")
    theirs = other.step(shop.load.s("a"))
    uses: list[Body] = [
        lambda wf: wf.step(shop.publish.s(theirs)),
        lambda wf: wf.step(shop.publish.s({"deep": [theirs["x"]]})),
        lambda wf: wf.step(shop.clean.map(theirs)),
        lambda wf: wf.step(shop.collect.map([1, theirs])),
        lambda wf: wf.step(shop.note.s(), after=theirs),
        lambda wf: wf.step(shop.note.s(), after=theirs.failed),
        lambda wf: wf.step(shop.note.s(), when=theirs["x"] > 1),
        lambda wf: wf.step(shop.child.s("a", theirs)),
        lambda wf: wf.step(group(shop.publish.s(theirs))),
    ]
    for use in uses:
        refused(use, r"belongs to another workflow")
    for canvas in [shop.publish.s(theirs), shop.child.s(theirs), group(shop.publish.s(theirs))]:
        with pytest.raises(InvalidWorkflow, match="belongs to another workflow"):
            canvas.build()


def test_a_reference_of_a_parent_is_none_of_its_child() -> None:
    kept: list[Any] = []

    def inner(wf: Builder) -> None:
        wf.step(shop.publish.s(kept[0]))

    child = workflow(name="refusals.inner")(inner)

    def body(wf: Builder) -> None:
        kept.append(wf.step(shop.load.s("a")))
        wf.step(child.s())

    refused(body, "belongs to another workflow. Give a child workflow what it needs as arguments")


def test_more_steps_than_may_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_STEPS", 3)

    def body(wf: Builder) -> None:
        for number in range(4):
            wf.step(shop.note.s(), name=f"n{number}")

    refused(body, "at most 3 steps. Use map")


def test_more_dependencies_than_may_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_EDGES", 3)

    def body(wf: Builder) -> None:
        first = [wf.step(shop.note.s(), name=f"n{number}") for number in range(2)]
        for number in range(2):
            wf.step(shop.note.s(), name=f"m{number}", after=first)

    refused(body, "at most 3 dependencies. Put a group between")


def test_more_calls_of_a_map_than_may_be_are_refused() -> None:
    most = bounds.MAX_CALLS
    for make in [
        lambda: shop.publish.map(range(most + 1)),
        lambda: shop.move.starmap(("a", "b") for _ in range(most + 1)),
        lambda: group(shop.note.si() for _ in range(most + 1)),
    ]:
        with pytest.raises(InvalidWorkflow, match=r"at most 100,000 calls\. Use chunks"):
            make()


def test_items_of_chunks_are_not_bounded_but_chunks_are() -> None:
    most = bounds.MAX_CALLS
    (step,) = shop.index.chunks(range(most + 5), 1000).build().steps
    assert len(step.calls) == 101
    with pytest.raises(InvalidWorkflow, match="at most 100,000 calls"):
        shop.index.chunks(range(2 * most + 1), 2)


def test_more_members_in_all_than_may_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_MEMBERS", 5)
    refused(lambda wf: wf.step(shop.publish.map(range(6))), "at most 5 members in all, not 6")

    def body(wf: Builder) -> None:
        for number in range(2):  # Two steps of a child are two members each.
            wf.step(shop.child.s("a"), name=f"c{number}")
        wf.step(shop.publish.map(range(2)))

    refused(body, "at most 5 members in all, not 6")


def test_workflows_too_deep_within_each_other_are_refused() -> None:
    with pytest.raises(InvalidWorkflow, match=r"nested at most 10 deep\. Does it contain itself\?"):
        shop.endless.build()


@pytest.mark.parametrize("name", ["", "x" * 101, "with space", "a/b", "-a", "a\n", "é\0", 7, None])
def test_impossible_names_are_refused(name: Any) -> None:
    refused(lambda wf: wf.step(shop.note.s(), name=name), "name of a step must be 1 to 100")
    with pytest.raises(InvalidWorkflow, match="name of a workflow must be 1 to 100"):
        workflow(name=name or " ")(lambda wf: None)


def test_unusual_names_are_possible() -> None:
    for name in ["x" * 100, "été", "第一步", "a.b-c:d_e", "_", "7"]:
        Builder("made").step(shop.note.s(), name=name)


def test_a_context_that_grows_too_large_is_refused() -> None:
    large = "x" * (bounds.LARGEST_CONTEXT - 20)
    assert context.merged({"a": 1}, [{"b": large}])["b"] == large
    with pytest.raises(InvalidWorkflow, match="context must be at most 65,536 bytes"):
        context.merged({"a": 1}, [{"b": large}, {"c": "x" * 20}])
    with pytest.raises(InvalidWorkflow, match="Unsupported type"):
        context.merged({}, [{"a": object()}])


def test_updates_of_the_context_are_merged_by_key_in_order() -> None:
    updates = [{"a": 1, "b": {"x": 1}}, {"b": {"y": 2}}, {"a": None}]
    assert context.merged({"a": 0, "z": 9}, updates) == {"a": None, "b": {"y": 2}, "z": 9}


def test_a_workflow_without_steps_is_refused() -> None:
    refused(lambda wf: None, "needs at least one step")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"affter": "x"}, r"no setting 'affter' of a step\. Did you mean 'after'\?"),
        ({"queue_name": "x"}, r"Options of its task go into \.using\(\.\.\.\)"),
        ({"on_failure": "contineu"}, r"'fail' or 'continue', .*Did you mean 'continue'\?"),
        ({"on_failure": None}, "'fail' or 'continue'"),
        ({"when": True}, "when= takes a condition on results, .* not True"),
        ({"when": "secret"}, "not str"),
        ({"after": 7}, "after= takes steps, their names, .* type int"),
        ({"concurrency": 5}, "are for groups and maps"),
        ({"tolerate": 5}, "are for groups and maps"),
        ({"compensate": "drop"}, "compensate= takes one call of a task"),
        ({"compensate": shop.add.s(1, 2)}, "too many positional arguments"),
        ({"compensate": shop.child.s()}, "is a workflow, and compensate= takes a task"),
    ],
)
def test_wrong_settings_of_a_step_are_refused(settings: dict[str, Any], reason: str) -> None:
    refused(lambda wf: wf.step(shop.note.s(), **settings), reason)


def test_after_takes_no_part_of_a_result() -> None:
    refused(
        lambda wf: wf.step(shop.note.s(), after=wf.step(shop.load.s("a"))["x"]),
        "Use when= for a condition",
    )


def test_several_steps_have_no_single_compensation() -> None:
    canvas = shop.note.s() | shop.clean.si("a")
    refused(lambda wf: wf.step(canvas, compensate=shop.drop.s()), "is several steps")
    refused(lambda wf: wf.step(canvas, on_failure="continue"), "is several steps")


def test_large_values_in_conditions_are_refused() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("a"))
        wf.step(shop.note.s(), when=loaded["text"] == "x" * 5000)

    refused(body, "A value in a condition must be at most 4,096 bytes")


def test_a_step_calls_a_task_or_a_workflow() -> None:
    from taskqueue.declarations.workflows.signatures import signature

    with pytest.raises(InvalidWorkflow, match="under @task or @workflow"):
        signature(len, (), {})  # type: ignore[arg-type]
    refused(lambda wf: wf.step(shop.note), "signatures")  # type: ignore[arg-type]


def test_a_stored_graph_is_checked_like_a_built_one() -> None:
    def step(name: str) -> Step:
        return Step(name=name, kind=StepKind.JOIN, value="[]")

    double = Graph(name="g", steps=(step("a"), step("a")))
    with pytest.raises(InvalidWorkflow, match="Two steps are named 'a'"):
        checking.check_graph(double)
    deep = Graph(name="g", steps=(step("a"),))
    for _ in range(bounds.MAX_NESTING):
        deep = Graph(name="g", steps=(Step(name="a", kind=StepKind.WORKFLOW, graph=deep),))
    with pytest.raises(InvalidWorkflow, match="nested at most 10 deep"):
        checking.check_graph(deep)
    strange = Graph(name="g", steps=(step("a"),), edges=(Edge("b", "a"),))
    with pytest.raises(InvalidWorkflow, match="refers to the step 'b'"):
        checking.check_graph(strange)
