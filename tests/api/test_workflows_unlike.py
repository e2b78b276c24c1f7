"""Groups of unlike calls with limits, over REST."""

from __future__ import annotations

import pytest

from taskqueue import group
from taskqueue.models import Workflow
from tests.api.conftest import ApiClient
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db


def test_a_group_of_unlike_calls_is_shown_with_its_children(root: ApiClient) -> None:
    calls = [add.s(1, 1), echo.s(2), add.s(3, 1) | add.s(4), fail.s() | echo.s()]
    run = finish(group(calls, concurrency=2, tolerate=1).enqueue())
    at = f"workflows/{run.id}/"

    told = root.look(at).json()
    assert told["return_value"] == [2, [[2], {}], 8, None]
    assert (told["members"], told["ended"], told["failures"]) == (4, 4, 1)
    children = [(each["step"], each["place"], each["status"]) for each in told["children"]]
    assert sorted(children) == [("group", 2, "succeeded"), ("group", 3, "failed")]

    (step,) = root.look(f"{at}steps/").json()["results"]
    assert (step["kind"], step["calls"], step["concurrency"], step["tolerate"]) == (
        "map", "", 2, 1,
    )  # fmt: skip
    tasks = root.look(f"{at}tasks/?step=group").json()["results"]
    assert [each["place"] for each in tasks] == [0, 1]
    (node,) = root.look(f"{at}graph/").json()["nodes"]
    assert node["shares"] == {"succeeded": 3, "failed": 1}
    for child in Workflow.objects.exclude(id=run.id):
        told = root.look(f"workflows/{child.id}/").json()
        assert (told["parent"], told["parent_step"]) == (str(run.id), "group")
        assert told["parent_place"] == child.parent_place


def test_the_error_of_a_child_is_that_of_its_group(root: ApiClient) -> None:
    run = finish(group([add.s(1, 1), fail.s() | echo.s()], concurrency=2).enqueue())
    (step,) = root.look(f"workflows/{run.id}/steps/").json()["results"]
    assert (step["status"], step["error"]["message"]) == ("failed", "it failed")
    answer = root.act(f"workflows/{run.id}/retry/")
    assert answer.status_code in (200, 202, 204), answer.content
    assert finish(run).status == "failed"
