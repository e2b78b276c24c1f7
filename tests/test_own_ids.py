"""Whoever enqueues a task may give it an id, which is used once."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from taskqueue import EnqueuedBefore, InvalidTask, InvalidWorkflow, new_id
from taskqueue.models import Task
from tests.api.conftest import root  # noqa: F401
from tests.engine.steps import run_at_once
from tests.management.test_taskqueue import run_json
from tests.sample.tasks import add, noop, unique

pytestmark = pytest.mark.django_db


def test_a_task_has_the_id_that_it_is_given() -> None:
    own = new_id()
    assert add.using(id=own).enqueue(1).id == own
    assert noop.using(id=str(own)).options.id == own
    assert Task.objects.get().id == own


def test_an_id_is_used_once_and_the_callers_transaction_goes_on() -> None:
    own = new_id()
    add.using(id=own).enqueue(1)
    with transaction.atomic():
        other = noop.enqueue()
        with pytest.raises(EnqueuedBefore, match=f"Task {own} exists already.") as refused:
            noop.using(id=own).enqueue()
    assert (refused.value.task_id, refused.value.name) == (own, add.name)
    assert set(Task.objects.values_list("id", flat=True)) == {own, other.id}


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_is_refused() -> None:
    own = new_id()
    ends: list[str] = []
    run_at_once([lambda: ends.append(_try(own))] * 4)
    assert sorted(ends) == ["refused", "refused", "refused", "written"]
    assert Task.objects.count() == 1


def _try(own: UUID) -> str:
    try:
        noop.using(id=own).enqueue()
    except EnqueuedBefore:
        return "refused"
    return "written"


def test_many_take_one_only_for_a_single_call() -> None:
    own = new_id()
    with pytest.raises(InvalidTask, match="id= names one task, and these are 2"):
        add.using(id=own).enqueue_many([((1,), {}), ((2,), {})])
    (result,) = add.using(id=own).enqueue_many([((1,), {})])
    assert result.id == own
    with pytest.raises(EnqueuedBefore):
        add.using(id=own).enqueue_many([((1,), {})])


def test_the_holder_of_a_key_is_returned_and_the_id_is_not_used() -> None:
    holder, own = unique.using(unique_key="k").enqueue("a"), new_id()
    result = unique.using(unique_key="k", id=own).enqueue("a")
    assert (result.id, result.created) == (holder.id, False)
    assert add.using(id=own).enqueue(1).id == own


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (uuid4(), "a UUID of version 7"),
        ("of-mine", "'of-mine' is no UUID"),
        (7, "a UUID of version 7"),
        (UUID("01900000-0000-7000-8000-000000000000"), "within 30 minutes of the enqueue"),
    ],
)
def test_an_id_that_would_be_listed_out_of_order_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        add.using(id=value)


def test_a_definition_and_a_step_of_a_workflow_have_none() -> None:
    with pytest.raises(InvalidWorkflow, match="takes no id= of its own"):
        add.using(id=new_id()).s(1)


def test_rest_takes_one_and_answers_a_second_task_with_409(root: Any) -> None:  # noqa: F811
    own = str(new_id())
    body = {"name": "tests.sample.rest_tasks.tell", "id": own}
    answer = root.act("tasks/", body)
    assert (answer.status_code, answer.json().get("id")) == (201, own), answer.content
    again = root.act("tasks/", body)
    assert (again.status_code, again.json()["code"]) == (409, "task_exists")
    bulk = root.act("tasks/bulk/", {"tasks": [body, {**body, "id": str(new_id())}]})
    assert (bulk.status_code, bulk.json()["code"]) == (409, "task_exists")
    ids = [str(new_id()), str(new_id())]
    bulk = root.act("tasks/bulk/", {"tasks": [{**body, "id": each} for each in ids]})
    assert [each["id"] for each in bulk.json()["results"]] == ids
    wrong = root.act("tasks/", {**body, "id": str(uuid4())})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/id")


def test_the_command_line_takes_one() -> None:
    own = new_id()
    told = run_json("enqueue", add.name, "--args", "[1]", "--set", f"id={own}")
    assert told["id"] == str(own)
