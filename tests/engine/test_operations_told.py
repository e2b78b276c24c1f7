"""Reports of an operation: why tasks refused it, without secrets."""

from __future__ import annotations

import pytest

from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.operations import serving
from taskqueue.engine.operations.asking import start_operation
from taskqueue.models import Audit
from tests.engine.operation_steps import figures, fill, seen, serve_all

pytestmark = pytest.mark.django_db


def test_tasks_that_refuse_a_change_are_tried_once_and_reported_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "CHUNK", 3)
    short = fill(1, lease_duration=9)
    everything, changes = TaskFilter(everything=True), {"changes": {"ping_interval": 5}}
    one = start_operation("update", everything, arguments=changes)
    serve_all()
    assert figures(one) == ("finished", 1, 0)
    why = f"Task {short[0]}: ping_interval must be at most a third of lease_duration"
    assert seen(one).error.startswith(f"1 task refused the changes. {why}")
    fill(2)
    fill(4, lease_duration=9)
    several = start_operation("update", everything, arguments=changes)
    assert serve_all() == 3, "in chunks of three, and none comes back to what was refused"
    assert figures(several) == ("finished", 7, 2)
    assert seen(several).error.startswith("5 tasks refused the changes. Task ")


def test_the_audit_does_not_tell_values_of_arguments() -> None:
    which = TaskFilter(arguments={"token": "hunter2"})
    start_operation("retry", which, query="args.token:hunter2")
    start_operation("retry", which)
    details = Audit.objects.order_by("id").values_list("detail", flat=True)
    assert list(details) == ["retry: by a search for arguments", "retry: by a filter of arguments"]
