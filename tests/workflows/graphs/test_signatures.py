"""Signatures, and the chains, groups and chords that are made of them."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import (
    ArgumentsDoNotBind,
    Capacity,
    Debounce,
    InvalidArguments,
    InvalidWorkflow,
    Throttle,
    WrongType,
    chain,
    chord,
    group,
)
from taskqueue.core.workflow_states import StepKind
from tests.sample import tasks
from tests.workflows import shop
from tests.workflows.graph_text import call, edges, steps


def test_a_chain_gives_each_call_the_result_of_the_one_before() -> None:
    graph = chain(shop.load.s("monday"), shop.clean.s(), shop.publish.s()).build()
    assert steps(graph) == {
        "load": 'load["monday"]',
        "clean": 'clean[{"$step":"load"}]',
        "publish": 'publish[{"$step":"clean"}]',
    }
    assert edges(graph) == {"load -> clean", "clean -> publish"}
    assert graph.last == ("publish",)
    assert graph.by_name["publish"].inputs == ("clean",)


def test_the_result_comes_before_the_arguments_of_the_signature() -> None:
    graph = (shop.add.s(1, 2) | shop.add.s(3) | shop.move.s("there", quietly=True)).build()
    assert steps(graph)["add-2"] == 'add[{"$step":"add"},3]'
    assert steps(graph)["move"] == 'move[{"$step":"add-2"},"there"]{"quietly":true}'


def test_an_immutable_signature_leaves_the_result_out_and_still_waits() -> None:
    graph = (shop.load.s("monday") | shop.add.si(1, 2)).build()
    assert steps(graph)["add"] == "add[1,2]"
    assert edges(graph) == {"load -> add"}
    assert graph.by_name["add"].inputs == ()


def test_chains_of_chains_are_one_chain() -> None:
    one = chain(shop.load.s("monday"), chain(shop.clean.s(), shop.publish.s()))
    other = shop.load.s("monday") | (shop.clean.s() | shop.publish.s())
    assert steps(one.build()) == steps(other.build())
    assert edges(one.build()) == edges(other.build())


def test_calls_may_be_given_as_a_list() -> None:
    calls = [shop.load.s("monday"), shop.clean.s()]
    assert steps(chain(calls).build()) == steps(chain(*calls).build())
    assert steps(group(calls[:1]).build()) == steps(group(*calls[:1]).build())


def test_calls_of_one_definition_with_other_options_are_unlike() -> None:
    graph = group(shop.clean.s("a"), shop.clean.using(priority=5).s("b")).build()
    assert {step.kind for step in graph.steps} == {StepKind.TASK, StepKind.JOIN}


def test_callbacks_of_a_whole_canvas_are_callbacks_of_the_workflow() -> None:
    canvas = (shop.load.s("monday") | shop.clean.s()).on_success(shop.publish.s())
    graph = canvas.on_failure(shop.page.s()).on_end(shop.note.si()).build()
    assert [(each.when, call(each.call)) for each in graph.callbacks] == [
        ("succeeded", 'publish[{"$workflow":"result"}]'),
        ("failed", 'page[{"$workflow":"error"}]'),
        ("ended", "note[]"),
    ]
    assert set(steps(graph)) == {"load", "clean"}


def test_callbacks_within_a_canvas_are_steps_and_no_results() -> None:
    graph = (shop.load.s("monday").on_failure(shop.page.s()) | shop.clean.s()).build()
    assert steps(graph)["load.page"] == 'page[{"$step":"load","part":"error"}]'
    assert edges(graph) == {"load -> clean", "load -failed-> load.page"}
    assert graph.last == ("clean",)


def test_the_failure_callback_of_a_chain_follows_whichever_call_fails() -> None:
    inner = chain(shop.load.s("monday"), shop.clean.s()).on_failure(shop.page.s())
    graph = (inner.on_end(shop.note.si()) | shop.publish.s()).build()
    failed = steps(graph)["chain.page"]
    assert failed == 'page[{"$step":["chain.load","chain"],"part":"error"}]'
    assert {"chain.load -failed-> chain.page", "chain -failed-> chain.page"} < edges(graph)
    assert "chain -ended-> chain.note" in edges(graph)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1, 2, 3, 4), {}), ((1,), {"z": 2}), ((1, 2), {"y": 3})]
)
def test_arguments_that_bind_nowhere_are_refused_as_an_enqueue_refuses_them(
    args: Any, kwargs: Any
) -> None:
    with pytest.raises(ArgumentsDoNotBind) as of_signature:
        shop.add.s(*args, **kwargs)
    with pytest.raises(ArgumentsDoNotBind) as of_enqueue:
        shop.add.encode(args, kwargs)
    assert str(of_signature.value) == str(of_enqueue.value)


def test_a_signature_may_lack_what_the_result_before_fills() -> None:
    shop.add.s(1)
    with pytest.raises(ArgumentsDoNotBind, match="missing a required argument: 'y'"):
        shop.add.si(1)


def test_an_error_of_a_map_says_which_item_is_wrong() -> None:
    with pytest.raises(WrongType, match=r"^items\[1\]: .*'a' must be int, not str \('b'\)") as one:
        tasks.add.map([1, "b"])
    assert one.value.path == ("args", 0)
    with pytest.raises(ArgumentsDoNotBind, match=r"^items\[2\]: "):
        tasks.add.starmap([(1,), (1, 2), (1, 2, 3)])
    with pytest.raises(WrongType, match=r"^chunks\[0\]: "):
        tasks.add.chunks([1, 2], 2)


def test_values_that_json_does_not_have_are_refused_as_an_enqueue_refuses_them() -> None:
    for args in [(object(),), ({1: 2},), (float("nan"),), ("\0",)]:
        with pytest.raises(InvalidArguments) as of_signature:
            shop.publish.s(*args)
        with pytest.raises(InvalidArguments) as of_enqueue:
            shop.publish.encode(args, {})
        assert type(of_signature.value) is type(of_enqueue.value)
        assert str(of_signature.value) == str(of_enqueue.value)


def test_arguments_are_kept_as_they_were_when_the_signature_was_made() -> None:
    ids = [1, 2]
    signature = shop.index.s(ids)
    ids.append(3)
    assert steps(signature.build()) == {"index": "index[[1,2]]"}


@pytest.mark.parametrize(
    ("canvas", "reason"),
    [
        (lambda: shop.add.s(1), "Step 'add': .*missing a required argument: 'y'"),
        (lambda: shop.note.s() | shop.note.s(), r"Step 'note-2': .*use \.si\(\.\.\.\)"),
        (lambda: shop.note.s() | group(shop.note.s()), r"too many positional arguments"),
        (lambda: shop.clean.map([]) | shop.add.s(1, 2), "too many positional arguments"),
        (lambda: shop.load.s("a").on_success(shop.add.s(1, 2)), "too many positional arguments"),
    ],
)
def test_arguments_that_do_not_bind_where_they_stand_are_refused(canvas: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        canvas().build()


def test_a_step_of_a_definition_with_a_unique_key_is_refused() -> None:
    with pytest.raises(InvalidWorkflow, match=r"sync\.using\(unique_key=None\)"):
        shop.sync.s(1).build()
    shop.sync.using(unique_key=None).s(1).build()
    assert shop.note.s().on_end(shop.sync.si(1)).build().callbacks, "A callback may hold one."


@pytest.mark.parametrize(
    "options",
    [{"capacity": Capacity(1)}, {"throttle": Throttle("1/h")}, {"debounce": Debounce(5)}],
    ids=lambda options: next(iter(options)),
)
def test_a_step_of_a_definition_that_may_let_no_task_in_is_refused(options: Any) -> None:
    (name,) = options
    limited = shop.note.using(**options)
    with pytest.raises(InvalidWorkflow, match=rf"note\.using\({name}=None\)"):
        limited.s().build()
    limited.using(**{name: None}).s().build()


def test_the_options_of_a_signature_are_those_of_its_definition() -> None:
    (step,) = shop.clean.using(queue_name="slow", run_after=60).s("a").build().steps
    assert step.call is not None
    assert step.call.definition is not None
    assert step.call.definition.options.queue_name == "slow"


def test_tasks_that_take_their_context_are_given_it_besides() -> None:
    graph = (shop.note.s() | shop.watched.s()).build()
    assert steps(graph)["watched"] == 'watched[{"$step":"note"}]'


@pytest.mark.parametrize(
    "make",
    [
        lambda: shop.note.s() | shop.note,
        lambda: chain(shop.note.s(), None),
        lambda: group([shop.note.s(), [shop.note.s()]]),
        lambda: chord([shop.note.s()], "note"),
        lambda: shop.note.s().on_end(shop.note),
        lambda: chain(),
        lambda: chain([]),
    ],
)
def test_only_signatures_make_a_canvas(make: Any) -> None:
    with pytest.raises(InvalidWorkflow, match=r"signatures|at least one call"):
        make()


def test_a_callback_of_a_workflow_is_one_call_of_a_task() -> None:
    for callback in [shop.note.si() | shop.note.si(), shop.child.s()]:
        with pytest.raises(InvalidWorkflow, match="one call of a task"):
            shop.note.s().on_end(callback).build()


def test_several_workers_and_broadcasts_are_ordinary_steps() -> None:
    graph = (shop.load.s("monday") | shop.reload.s() | shop.summarise.s()).build()
    assert [step.kind for step in graph.steps] == [StepKind.TASK] * 3


def test_a_workflow_of_a_chord_is_named_as_one() -> None:
    header = [shop.clean.s("a"), shop.clean.s("b")]
    assert chord(header, shop.summarise.s()).build().name == "chord(clean)"
    assert chain(shop.clean.s("a"), shop.publish.s()).build().name == "chain(clean)"
