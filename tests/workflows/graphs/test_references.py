"""References in stored arguments: what stands for results, and what only looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import InvalidWorkflow
from taskqueue.declarations.workflows.reference_data import (
    Target,
    resolve,
    target_of,
    targets_in,
)
from taskqueue.declarations.workflows.references import Reference, encode_with_references
from taskqueue.declarations.workflows.resolution import KnownValues, resolved_call

RESULTS: dict[str, Any] = {
    "load": {"rows": 3, "files": ["a", "b"], "$step": "mine"},
    "text": "abc",
    "nothing": None,
}
ERROR = {"error_class": "ValueError", "message": "no", "task_id": "7"}


read = KnownValues(
    results=RESULTS, errors={"load": ERROR, "late": "another"}, args=[[1, 2]],
    kwargs={"day": "monday"}, result="the whole", error=ERROR,
)  # fmt: skip


def resolved(data: Any) -> Any:
    return resolve(json.dumps(data), read)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"$step": "load", "path": ["rows"]}, 3),
        ({"$step": "load", "path": ["files", 1]}, "b"),
        ({"$step": "load", "path": ["files", -1]}, "b"),
        ({"$step": "load", "path": ["files"], "length": True}, 2),
        ({"$step": "text", "length": True}, 3),
        ({"$step": "nothing", "length": True}, None),
        ({"$step": "nothing", "path": ["any", 3]}, None),
        ({"$step": "load", "path": ["$step"]}, "mine"),
        ({"$step": "text", "part": "error"}, None),
        ({"$step": "load", "part": "error", "path": ["message"]}, "no"),
        ({"$step": ["text", "load", "late"], "part": "error"}, ERROR),
        ({"$step": "not run"}, None),
        ({"$argument": "day"}, "monday"),
        ({"$argument": 0, "path": [1]}, 2),
        ({"$workflow": "result"}, "the whole"),
        ({"$workflow": "error", "path": ["task_id"]}, "7"),
        ([1, {"deep": [{"$step": "text"}]}, "$step"], [1, {"deep": ["abc"]}, "$step"]),
        ({"$$step": "load"}, {"$step": "load"}),
        ({"$$$": 1, "$other": 2}, {"$$": 1, "$other": 2}),
    ],
)
def test_references_stand_for_values(data: Any, value: Any) -> None:
    assert resolved(data) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"$step": "load", "path": ["missing"]}, r"step 'load'\['missing'\] does not exist"),
        ({"$step": "load", "path": ["files", 2]}, r"\['files'\]\[2\] does not exist: 2 is not"),
        ({"$step": "load", "path": [0]}, "0 is not in it"),
        ({"$step": "load", "path": ["files", "a"]}, "'a' is not in it"),
        ({"$step": "text", "path": [0]}, "0 is not in it"),
        ({"$step": "load", "path": ["rows", "x"]}, "'x' is not in it"),
        ({"$step": "load", "path": ["rows"], "length": True}, "has no length: it is a number"),
    ],
)
def test_parts_that_do_not_exist_are_reported(data: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        resolved(data)


@pytest.mark.parametrize(
    "data",
    [
        {"$step": "load", "$argument": 0},
        {"$step": "load", "pth": []},
        {"$step": "load", "path": "rows"},
        {"$step": "load", "path": [True]},
        {"$step": "load", "path": [1.5]},
        {"$step": "load", "part": "all"},
        {"$step": "load", "length": 1},
        {"$step": 7},
        {"$step": []},
        {"$step": ["a", 7]},
        {"$argument": None},
        {"$argument": True},
        {"$workflow": "name"},
        {"$workflow": ["result"]},
    ],
)
def test_references_that_are_written_wrongly_are_refused(data: Any) -> None:
    with pytest.raises(InvalidWorkflow, match="A reference "):
        target_of(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "$step", "a", "$"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$step", "$$step", "$", "$argument", "path", "a", "é"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
targets = st.builds(
    Target,
    steps=st.lists(st.sampled_from(["a", "b.c"]), min_size=1, max_size=2).map(tuple),
    part=st.just("error"),
    path=st.lists(st.sampled_from(["x", "$step", 0, -1]), max_size=3).map(tuple),
    is_length=st.booleans(),
    is_lazy=st.booleans(),
)


@given(json_values)
def test_whatever_a_task_is_given_comes_back_the_same(value: Any) -> None:
    text, references = encode_with_references([value], limit=100_000, what="args")
    assert references == ()
    assert targets_in(text) == []
    assert resolved_call(text, "{}", read) == ([value], {})


@given(targets, json_values)
def test_references_are_found_wherever_they_stand(target: Target, beside: Any) -> None:
    owner = object()
    value = [beside, {"$deep": [Reference(owner, target)]}]
    text, references = encode_with_references(value, limit=100_000, what="args")
    assert [each.target for each in references] == [target] == targets_in(text)
    assert target_of(target.to_json()) == target
    data = json.loads(text)
    assert data[1]["$$deep"] == [target.to_json()]
