"""`@workflow`: its options, and how workflows are found."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import InvalidTask, InvalidWorkflow, UnknownWorkflow, workflow
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.workflows import Builder
from tests.workflows import shop


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"deadlin": 5}, r"no option 'deadlin' of a workflow. Did you mean 'deadline'\?"),
        ({"deadline": "soon"}, "deadline"),
        ({"retention": -1}, "retention"),
        ({"fail_fast": 1}, "fail_fast must be True or False"),
        ({"on_duplicate": "replace"}, "on_duplicate must be"),
        ({"version": 3}, "version must be text"),
        ({"sensitive": [1]}, "sensitive must hold names"),
        ({"unique_key": ["nobody"]}, "names the argument 'nobody'"),
        ({"unique_key": ""}, "must not be empty"),
    ],
)
def test_wrong_options_of_a_workflow_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        workflow(name="refusals.options", **options)(lambda wf, day: None)


def test_options_of_the_declaration_cannot_be_given_to_using() -> None:
    with pytest.raises(InvalidWorkflow, match=r"set it in @workflow\(sensitive=\.\.\.\)"):
        shop.nightly.using(sensitive=["day"])


def test_functions_that_cannot_build_are_refused() -> None:
    async def later(wf: Builder) -> None: ...

    def parts(wf: Builder) -> Any:
        yield

    def nothing() -> None: ...

    for body in (later, parts):
        with pytest.raises(InvalidWorkflow, match="built by a plain function"):
            workflow(name="refusals.body")(body)
    with pytest.raises(InvalidWorkflow, match="no first argument for its builder"):
        workflow(name="refusals.body")(nothing)
    with pytest.raises(InvalidWorkflow, match="defined inside another function"):
        workflow(lambda wf: None)
    build = lambda wf: None  # noqa: E731
    build.__qualname__ = "x" * 101
    with pytest.raises(InvalidWorkflow, match=r"Give it a shorter one with @workflow\(name="):
        workflow(build)
    with pytest.raises(InvalidTask, match="decorates functions"):
        workflow(3)  # type: ignore[call-overload]


def test_workflows_are_found_by_name() -> None:
    assert workflows.get("tests.workflows.shop.nightly") is shop.nightly
    with pytest.raises(UnknownWorkflow, match=r"Did you mean 'tests\.workflows\.shop\.nightly'\?"):
        workflows.get("tests.workflows.shop.nightyl")
    with pytest.raises(InvalidTask, match=r"@workflow\(name=\.\.\.\)"):
        workflow(name="tests.workflows.shop.nightly")(lambda wf: None)
