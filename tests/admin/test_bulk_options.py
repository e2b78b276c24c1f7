"""The form that changes many tasks has a field for every option that can be changed."""

from __future__ import annotations

import pytest

from taskqueue.models import Operation, Task
from tests.admin.conftest import LogIn
from tests.admin.test_operations import confirm
from tests.engine.operation_steps import serve_all
from tests.engine.steps import claim_one, task_of
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def test_options_of_many_are_changed_and_taken_back(log_in_as: LogIn) -> None:
    waiting = noop.using(timeout=9, retention=60).enqueue()
    running = noop.using(queue_name="b").enqueue()
    claim_one(queue="b")
    client = log_in_as("superuser")
    answer = confirm(
        client, "update", everything="1", backoff="fixed(5)", deadline="2h", metadata='{"a": 1}',
        clear=["timeout", "retention"],
    )  # fmt: skip
    assert answer.status_code == 302
    changes = Operation.objects.get().arguments["changes"]
    assert changes["backoff"] == {"policy": "fixed", "seconds": 5, "jitter": 0}
    assert (changes["timeout"], changes["retention"]) == (None, None)
    serve_all()
    task = task_of(waiting)
    assert (task.metadata, task.retention, "timeout" in task.options) == ({"a": 1}, None, False)
    assert task.options["backoff"]["policy"] == "fixed"
    assert task.deadline_at is not None
    # What runs cannot be edited, and is left out whole.
    assert task_of(running).metadata == {}
    assert Task.objects.count() == 2


def test_an_option_cannot_be_set_and_reset_at_once(log_in_as: LogIn) -> None:
    noop.enqueue()
    client = log_in_as("superuser")
    answer = confirm(client, "update", everything="1", timeout_0="5", clear=["timeout"])
    assert "not both" in answer.content.decode()
    assert "Give at least one option" in confirm(client, "update", everything="1").content.decode()
    assert not Operation.objects.exists()
