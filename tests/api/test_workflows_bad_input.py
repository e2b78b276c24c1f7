"""Each kind of workflow that cannot work, by Python and by REST: refused, and nothing is written.

Both faces run the same builder. What a request describes as JSON is in `test_workflows_refused`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taskqueue import Every, InvalidSchedule, InvalidWorkflow, group, schedules, workflow
from taskqueue.declarations.workflows import checking
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.models import Audit, Dependency, Member, Schedule, Step, StepCalls, Task, Workflow
from taskqueue.workflows import Builder
from tests.api.conftest import ApiClient
from tests.workflows import shop

pytestmark = pytest.mark.django_db
WRITTEN = (Workflow, Step, Dependency, StepCalls, Member, Task, Schedule, Audit)


@pytest.fixture(autouse=True)
def _nothing_is_written(db: None) -> Iterator[None]:
    yield
    for model in WRITTEN:
        assert not model._default_manager.exists(), model


@dataclasses.dataclass(frozen=True)
class Bad:
    """A builder, and what the refusal has to say."""

    build: Callable[[Builder], object]
    words: str
    # Bounds that are lower for it: what is beyond the real ones takes long to build.
    bounds: tuple[tuple[str, int], ...] = ()


def cycle(wf: Builder) -> None:
    wf.step(shop.note.s(), name="a", after="b")
    wf.step(shop.note.s(), name="b", after="a")


def unknown_name(wf: Builder) -> None:
    wf.step(shop.publish.s(1))
    wf.step(shop.note.s(), after="publsh")


def duplicate(wf: Builder) -> None:
    wf.step(shop.note.s())
    wf.step(shop.note.s())


def foreign_step(wf: Builder) -> None:
    wf.step(shop.publish.s(Builder("other").step(shop.load.s("a"))))


def foreign_step_waited_for(wf: Builder) -> None:
    wf.step(shop.note.s(), after=Builder("other").step(shop.load.s("a")).failed)


def many_steps(wf: Builder) -> None:
    for number in range(4):
        wf.step(shop.note.s(), name=f"n{number}")


def many_edges(wf: Builder) -> None:
    first = [wf.step(shop.note.s(), name=f"n{number}") for number in range(2)]
    for number in range(2):
        wf.step(shop.note.s(), name=f"m{number}", after=first)


def many_members(wf: Builder) -> None:
    for number in range(2):
        wf.step(shop.publish.map(range(3)), name=f"m{number}")


def deep(wf: Builder) -> None:
    canvas: Any = shop.note.si()
    for _ in range(11):
        canvas = group(canvas, shop.note.si())
    wf.step(canvas)


def large_condition(wf: Builder) -> None:
    loaded = wf.step(shop.load.s("a"))
    wf.step(shop.note.s(), when=loaded["text"] == "x" * 5000)


BAD = {
    "a cycle": Bad(cycle, "The steps form a cycle: a → b → a."),
    "an unknown name": Bad(unknown_name, "Did you mean 'publish'?"),
    "a duplicate": Bad(duplicate, "Two steps are named 'note'."),
    "unbound arguments": Bad(lambda wf: wf.step(shop.add.s(1)), "missing a required argument: 'y'"),
    "unbound arguments of a map": Bad(lambda wf: wf.step(shop.add.map([1])), "missing a required"),
    "a step of another builder": Bad(foreign_step, "belongs to another workflow"),
    "to wait for one": Bad(foreign_step_waited_for, "belongs to another workflow"),
    "too many steps": Bad(many_steps, "at most 3 steps. Use map", (("MAX_STEPS", 3),)),
    "too many edges": Bad(many_edges, "at most 3 dependencies", (("MAX_EDGES", 3),)),
    "too many calls of a map": Bad(
        lambda wf: wf.step(shop.publish.map(range(4))), "at most 3 calls", (("MAX_CALLS", 3),)
    ),
    "too many members": Bad(many_members, "at most 5 members", (("MAX_MEMBERS", 5),)),
    "workflows too deep": Bad(lambda wf: wf.step(shop.endless.s()), "nested at most 10 deep"),
    "canvas too deep": Bad(deep, "nested at most 10 deep"),
    "a long name": Bad(lambda wf: wf.step(shop.note.s(), name="x" * 101), "must be 1 to 100"),
    "no step": Bad(lambda wf: None, "needs at least one step"),
    "a setting of no step": Bad(lambda wf: wf.step(shop.note.s(), affter="a"), "mean 'after'?"),
    "a large value in a condition": Bad(large_condition, "at most 4,096 bytes"),
}


@dataclasses.dataclass(frozen=True)
class Made:
    """A workflow that cannot be built."""

    workflow: BaseWorkflow
    words: str


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Declare one, which is forgotten afterwards, with the bounds that it is to exceed."""
    own = BAD[request.param]
    for bound, value in own.bounds:
        monkeypatch.setattr(checking, bound, value)
    monkeypatch.setattr(workflows, "_definitions", dict(workflows._definitions))
    return Made(workflow(name="tests.bad_input", api=True)(own.build), own.words)


def test_python_refuses_it(bad: Made) -> None:
    with pytest.raises(InvalidWorkflow) as refused:
        bad.workflow.enqueue()
    assert bad.words in str(refused.value)


def test_rest_refuses_it(bad: Made, root: ApiClient) -> None:
    answer = root.act("workflows/", {"name": bad.workflow.name})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (422, "invalid_workflow"), told
    assert bad.words in told["detail"]


def test_a_schedule_of_it_is_refused_by_both(bad: Made, root: ApiClient) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        schedules.create("nightly", bad.workflow, Every(hours=1))
    assert bad.words in str(refused.value)
    rule = {"kind": "every", "interval": 3600}
    body = {"name": "nightly", "task": bad.workflow.name, "rule": rule}
    answer = root.act("schedules/", body)
    told = answer.json()
    assert (answer.status_code, told["code"]) == (422, "invalid_schedule"), told
    assert bad.words in told["detail"]
