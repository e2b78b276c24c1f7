"""`taskqueue update` edits a task that waits: its arguments, deadline, expiry and metadata."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue.models import Audit
from tests.engine.steps import claim_one, task_of
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def test_arguments_and_options_are_edited_together() -> None:
    result = add.enqueue(1)
    told = run_json(
        "update", result.id, "--args", "[2]", "--kwargs", '{"b": 3}', "--set", "deadline=2h",
        "--set", 'metadata={"a": 1}', "--reason", "a typo", "--by", "anna",
    )  # fmt: skip
    assert [line["changed"] for line in told["tasks"]] == [True]
    task = task_of(result)
    assert (task.args, task.kwargs, task.metadata) == ([2], {"b": 3}, {"a": 1})
    assert task.deadline_at is not None
    assert abs(task.deadline_at - timezone.now() - timedelta(hours=2)) < timedelta(minutes=5)
    line = Audit.objects.get()
    assert (line.actor, line.reason) == ("anna", "a typo")
    assert "arguments: a: 1 to 2, arguments: b: none to 3" in line.detail
    assert run("update", result.id, "--args", "[2]").endswith("nothing to change\n")
    run("update", result.id, "--set", "deadline=null")
    assert task_of(result).deadline_at is None


def test_an_invalid_edit_is_refused() -> None:
    result = add.enqueue(1)
    assert refused("update", result.id, "--args", '["x"]')[0] == 2
    assert refused("update", result.id, "--args", "[1, 2, 3]")[0] in (1, 2)
    assert "--set, --args or --kwargs" in refused("update", result.id)[1]
    many = refused("update", "--all", "--args", "[2]", "--yes")
    assert (many[0], "for one task" in many[1]) == (2, True)
    claim_one()
    code, said = refused("update", result.id, "--args", "[2]")
    assert (code, "can only be changed while it waits" in said) == (1, True)
    assert not Audit.objects.exists()


def test_an_edit_of_many_is_done_in_the_background() -> None:
    result = noop.enqueue()
    told = run_json(
        "operations", "start", "update", "--all", "--set", "deadline=2h", "--set",
        "backoff=fixed(5)",
    )  # fmt: skip
    assert told["arguments"]["changes"]["backoff"] == {"policy": "fixed", "seconds": 5, "jitter": 0}
    assert "retry_for cannot be changed in the background" in refused(
        "operations", "start", "update", "--all", "--set", "retry_for=ValueError"
    )[1]  # fmt: skip
    assert task_of(result).deadline_at is None
