"""Workflows that REST refuses with a clear error, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from taskqueue.declarations.workflows import checking
from taskqueue.declarations.workflows.bounds import MAX_CALLS, MAX_STEPS
from taskqueue.models import Audit, Step, Task, Workflow
from tests.api.conftest import ApiClient
from tests.sample import rest_workflows
from tests.sample.rest_tasks import order, sign_in, tell
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db
TELL = tell.name


def step(name: Any = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "task": TELL, **more}


DEEP = f"/steps/0/args{'/0' * 32}"


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def deep_condition(depth: int) -> Any:
    value: Any = {"op": "is_null", "of": [{"$step": "a"}]}
    for _ in range(depth):
        value = {"op": "not", "of": [value]}
    return value


@pytest.fixture(autouse=True)
def _nothing_is_written(db: None) -> Iterator[None]:
    yield
    for model in (Workflow, Step, Task, Audit):
        assert not model._default_manager.exists()


KEYLESS = {"unique_key": None}
A, B = step("a"), step("b", after="a")
WRONG: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("a cycle", {"steps": [step("a", after="b"), B]}, "invalid_workflow", "/steps", "a → b → a"),
    ("a step after itself", {"steps": [step("a", after="a")]}, "invalid_workflow", "/steps", "a"),
    (
        "an unknown name", {"steps": [step("load"), step("b", after="lod")]}, "invalid_workflow",
        "/steps", "Did you mean 'load'",
    ),
    (
        "an unknown name in arguments",
        {"steps": [step("load"), step("b", args=[{"$step": "lod"}])]},
        "invalid_workflow", "/steps", "Did you mean 'load'",
    ),
    (
        "an unknown name in a condition",
        {"steps": [A, step("b", when={"op": "is_null", "of": [{"$step": "c"}]})]},
        "invalid_workflow", "/steps", "'c'",
    ),
    ("a duplicate", {"steps": [A, step("a")]}, "invalid_workflow", "/steps/1", "'a'"),
    (
        "unbound arguments", {"steps": [step(task=order.name)]}, "invalid_workflow", "/steps/0",
        "cannot be called",
    ),
    (
        "unbound arguments of a map",
        {"steps": [step(task=sign_in.name, map=["x"], options=KEYLESS)]},
        "invalid_workflow", "/steps/0", "cannot be called",
    ),
    ("a name over 100", {"steps": [step("a" * 101)]}, "invalid_workflow", "/steps/0", "1 to 100"),
    (
        "a workflow's name over 100", {"name": "a" * 101, "steps": [A]}, "invalid_workflow",
        "/name", "1 to 100",
    ),
    ("no name", {"steps": [{"task": TELL}]}, "invalid_workflow", "/steps/0", "name of a step"),
    ("no task", {"steps": [{"name": "a"}]}, "invalid_workflow", "/steps/0", "name of a task"),
    ("no steps", {"steps": []}, "invalid_workflow", "/steps", "list of steps"),
    ("steps that are none", {"steps": [1]}, "invalid_workflow", "/steps/0", "A step is an object"),
    ("steps of another kind", {"steps": {"a": A}}, "invalid", "/steps", "list of steps"),
    (
        "an unknown key", {"steps": [step(tsak="x")]}, "invalid_workflow", "/steps/0",
        "Did you mean 'task'",
    ),
    (
        "an unknown end", {"steps": [A, step("b", after=[{"step": "a", "when": "gone"}])]},
        "invalid_workflow", "/steps/1", "succeeded, failed, ended",
    ),
    (
        "an unknown comparison", {"steps": [A, step("b", when={"op": "===", "of": [1, 2]})]},
        "invalid_workflow", "/steps/1", "'==='",
    ),
    (
        "a deep condition", {"steps": [A, step("b", when=deep_condition(300))]},
        "invalid_workflow", "/steps/1", "levels deep",
    ),
    (
        "deep arguments", {"steps": [step(args=nested(300, 1))]}, "invalid_workflow", DEEP,
        "a",
    ),
    (
        "a NUL", {"steps": [step(args=["a\x00"])]}, "invalid_workflow", "/steps/0/args/0", "NUL",
    ),
    (
        "concurrency of 0", {"steps": [step(map=[1], concurrency=0)]}, "invalid_workflow",
        "/steps/0", "concurrency",
    ),
    (
        "tolerance below 0", {"steps": [step(map=[1], tolerate=-1)]}, "invalid_workflow",
        "/steps/0", "tolerate",
    ),
    (
        "a word for failures", {"steps": [step(on_failure="continu")]}, "invalid_workflow",
        "/steps/0", "Did you mean 'continue'",
    ),
    (
        "a unique key in a step", {"steps": [step(options={"unique_key": "k"})]},
        "invalid_workflow", "/steps/0", "unique_key",
    ),
    (
        "an option", {"steps": [A, step("b", options={"timout": 5})]}, "invalid",
        "/steps/1/options/timout", "Did you mean 'timeout'",
    ),
    (
        "a kept key", {"steps": [step(options={"unique_for": "kept"})]}, "invalid_option",
        "/steps/0/options/unique_for", "kept",
    ),
    (
        "an unknown task", {"steps": [A, step("b", task=f"{TELL}x")]}, "unknown_task",
        "/steps/1/task", f"Did you mean '{TELL}'",
    ),
    (
        "a value that was redacted",
        {"steps": [A, step("b", task=sign_in.name, args=["ann", "[redacted]"],
                           options=KEYLESS)]},
        "redacted_value", "/steps/1/args/1", "Send the value itself",
    ),
    ("a reference to an argument", {"steps": [step(args=[{"$argument": 0}])]}, "invalid_workflow",
     "/steps/0", "other steps only"),
    ("steps and arguments", {"steps": [A], "kwargs": {}}, "invalid", "/kwargs", "of their own"),
    ("nothing", {}, "invalid", "/name", "name of a workflow"),
    (
        "an unknown workflow", {"name": f"{rest_workflows.deliver.name}y"}, "unknown_workflow",
        "/name", f"Did you mean '{rest_workflows.deliver.name}'",
    ),
    (
        "arguments that do not bind", {"name": rest_workflows.deliver.name, "kwargs": {"dya": 1}},
        "arguments_do_not_bind", "", "cannot be called",
    ),
    (
        "a redacted argument",
        {"name": rest_workflows.deliver.name, "kwargs": {"day": "", "token": "[redacted]"}},
        "redacted_value", "/kwargs/token", "Send the value itself",
    ),
    (
        "nesting over 10", {"name": rest_workflows.endless.name}, "invalid_workflow", "/kwargs",
        "10 deep",
    ),
    (
        "steps over 1 MiB", {"steps": [step(args=["x" * 60_000], name=f"s{n}") for n in range(18)]},
        "invalid_workflow", "/steps", "1,048,576",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code", "pointer", "words"),
    [each[1:] for each in WRONG],
    ids=[each[0] for each in WRONG],
)
def test_an_invalid_workflow_is_refused_and_its_fault_pointed_at(
    body: dict[str, Any], code: str, pointer: str, words: str, root: ApiClient
) -> None:
    answer = root.act("workflows/", body)
    told = answer.json()
    assert (answer.status_code, told["code"]) == (422, code), told
    assert words in told["detail"], told
    assert [each["pointer"] for each in told.get("errors", [])] == [pointer] if pointer else True


def test_more_steps_than_a_workflow_may_have(root: ApiClient) -> None:
    steps = [{"name": f"s{number}", "task": TELL} for number in range(MAX_STEPS + 1)]
    answer = root.act("workflows/", {"steps": steps})
    assert answer.status_code == 422
    assert "10,000 steps. Use map" in answer.json()["detail"]


def test_more_dependencies_than_a_workflow_may_have(root: ApiClient) -> None:
    first = [f"a{number}" for number in range(225)]
    steps = [step(name) for name in first]
    steps += [step(f"b{number}", after=first) for number in range(225)]
    answer = root.act("workflows/", {"steps": steps})
    assert answer.status_code == 422
    assert "50,000 dependencies" in answer.json()["detail"]


def test_more_calls_than_a_map_may_have(root: ApiClient) -> None:
    answer = root.act("workflows/", {"steps": [step(map=[1] * (MAX_CALLS + 1))]})
    assert answer.status_code == 422
    assert "100,000 calls" in answer.json()["detail"]


def test_more_members_than_a_workflow_may_have(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "MAX_MEMBERS", 1_000)  # A million take half a minute to build.
    body = {"name": rest_workflows.wide.name, "kwargs": {"maps": 11, "items": 100}}
    answer = root.act("workflows/", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_workflow")
    assert "1,000 members in all, not 1,100" in answer.json()["detail"]


def test_a_step_of_another_builder(root: ApiClient) -> None:
    rest_workflows.LEAKED.clear()
    rest_workflows.leaky.build()
    answer = root.act("workflows/", {"name": rest_workflows.leaky.name})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_workflow")
    assert "another" in answer.json()["detail"]


def test_a_workflow_or_task_that_is_not_exposed_is_refused(root: ApiClient) -> None:
    answer = root.act("workflows/", {"name": rest_workflows.hidden.name})
    assert (answer.status_code, answer.json()["code"]) == (403, "workflow_not_exposed")
    answer = root.act("workflows/", {"steps": [A, step("b", task=add.name, args=[1, 2])]})
    assert (answer.status_code, answer.json()["code"]) == (403, "task_not_exposed")
    assert answer.json()["errors"][0]["pointer"] == "/steps/1/task"


def test_a_builder_that_raises_is_told_of_without_its_text(root: ApiClient) -> None:
    body = {"name": rest_workflows.unlucky.name, "kwargs": {"secret": "open sesame"}}
    answer = root.act("workflows/", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "workflow_not_built")
    assert "ValueError" in answer.json()["detail"]
    assert "sesame" not in answer.content.decode()
