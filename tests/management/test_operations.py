"""`manage.py taskqueue operations`: what is done to many tasks, seen and called off."""

from __future__ import annotations

from uuid import uuid4

import pytest

from taskqueue.control import TaskFilter, get_operation, start_operation
from taskqueue.models import Audit
from tests.engine.operation_steps import fail, serve_all
from tests.management.test_taskqueue import refused, run, run_json

pytestmark = pytest.mark.django_db

FAILED = TaskFilter(statuses=["failed"])


def test_operations_are_listed_newest_first() -> None:
    assert run_json("operations") == []
    fail(3)
    first = start_operation("retry", FAILED, query="status:failed", by="ada")
    second = start_operation("delete", FAILED, by="bob")
    listed = run_json("operations", "list")
    assert [each["id"] for each in listed] == [str(second.id), str(first.id)]
    assert (listed[1]["verb"], listed[1]["expected"], listed[1]["requested_by"]) == (
        "retry",
        3,
        "ada",
    )
    assert "status:failed" in run("operations")


def test_one_is_shown_with_its_progress() -> None:
    ids = fail(3)
    operation = start_operation("cancel", TaskFilter(ids=ids), reason="why not")
    serve_all()
    shown = run_json("operations", "show", operation.id)
    assert (shown["status"], shown["matched"], shown["done"], shown["refused"]) == (
        "finished", 3, 0, 3,
    )  # fmt: skip
    assert "why not" in run("operations", "show", operation.id)


def test_one_is_called_off_once() -> None:
    operation = start_operation("retry", FAILED)
    done = run("operations", "cancel", operation.id, "--by", "ada", "--reason", "too many")
    assert "cancelled" in done
    assert get_operation(operation.id).status == "cancelled"
    line = Audit.objects.get(noun="operation", verb="cancel")
    assert (line.actor, line.reason) == ("ada", "too many")
    code, message = refused("operations", "cancel", operation.id)
    assert (code, "cannot be cancelled" in message) == (1, True)


@pytest.mark.parametrize("key", [uuid4(), "nonsense", "a\0b"])
def test_one_that_is_not_there_is_refused(key: object) -> None:
    for action in ("show", "cancel"):
        code, message = refused("operations", action, key)
        assert (code, "There is no operation" in message) == (1, True)
