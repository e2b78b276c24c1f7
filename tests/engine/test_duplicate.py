"""Duplicate: another task like one that there is, tied to it by the audit alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue import InvalidTask, TaskDoesNotExist
from taskqueue.control import TaskFilter, dry_run, duplicate, duplicate_many
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from taskqueue.exceptions import ArgumentsDoNotBind
from taskqueue.models import Audit, Task
from taskqueue.results.by_hand import enqueue_by_hand
from tests.engine.steps import claim_one, end, task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, log_in, noop, unique

pytestmark = pytest.mark.django_db

OPTIONS = (
    "name", "args", "kwargs", "queue_name", "priority", "max_attempts", "max_crashes",
    "crash_delay", "options", "metadata", "retention", "lease_duration", "workers",
    "worker_names", "broadcast",
)  # fmt: skip


@pytest.mark.parametrize("status", sorted(TaskStatus))
def test_a_task_is_duplicated_whatever_became_of_it(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get(id=result.id)
    new_id = duplicate(result.id, by="anna", reason="once more")
    assert new_id != result.id
    assert Task.objects.values().get(id=result.id) == before
    new = Task.objects.get(id=new_id)
    assert (new.status, new.attempt, new.retry_of_id) == ("ready", 0, None)
    assert (new.name, new.args) == (before["name"], before["args"])
    lines = Audit.objects.filter(verb="duplicate", actor="anna", reason="once more")
    assert [(line.subject, line.before, line.detail) for line in lines.order_by("id")] == [
        (str(result.id), status, f"as {new_id}"),
        (str(new_id), "", f"of {result.id}"),
    ]


def test_a_duplicate_has_the_arguments_and_options_of_the_original() -> None:
    old = add.using(
        queue_name="mail", priority=4, max_attempts=3, timeout=9, metadata={"a": 1},
        worker_names=["w1"], retention=timedelta(days=2),
    ).enqueue(1, b=2)  # fmt: skip
    new = Task.objects.get(id=duplicate(old))
    assert {name: getattr(new, name) for name in OPTIONS} == {
        name: getattr(task_of(old), name) for name in OPTIONS
    }


def test_a_duplicate_keeps_secrets_and_shows_them_to_nobody() -> None:
    old = log_in.enqueue("bob", "pass-phrase")
    assert task_of(old).args == Task.objects.get(id=duplicate(old)).args
    assert not Audit.objects.filter(detail__contains="pass-phrase").exists()


def test_the_unique_key_stays_with_its_holder() -> None:
    old = unique.enqueue("a")
    new = Task.objects.get(id=duplicate(old))
    assert (new.unique_key, new.holds_unique_key) == (None, False)
    assert task_of(old).holds_unique_key


def test_terms_may_be_changed_on_the_way() -> None:
    old = add.enqueue(1)
    new = Task.objects.get(id=duplicate(old, queue_name="mail", priority=7))
    assert (new.queue_name, new.priority) == ("mail", 7)
    end(claim_one(queue="mail"), OutcomeKind.SUCCEEDED, return_value="2")
    for wrong in ({"priority": 1000}, {"queue_name": ""}, {"nonsense": 1}):
        with pytest.raises(InvalidTask):
            duplicate(old, **wrong)
    assert Task.objects.count() == 2


def test_a_missing_task_cannot_be_duplicated() -> None:
    with pytest.raises(TaskDoesNotExist):
        duplicate("01900000-0000-7000-8000-000000000000")
    assert not Audit.objects.exists()


def test_many_are_duplicated_once_each() -> None:
    old = [noop.enqueue() for _ in range(3)]
    every = TaskFilter(name=noop.name)
    assert dry_run(every, "duplicate") == (3, 3)
    assert duplicate_many(every, by="anna") == (3, 3)
    assert Task.objects.count() == 6
    assert duplicate_many(TaskFilter(ids=old, statuses=["failed"])) == (0, 0)


def test_an_enqueue_by_hand_is_audited_without_its_arguments() -> None:
    result = enqueue_by_hand(log_in, ["bob"], {"password": "pass-phrase"}, by="anna", reason="try")
    line = Audit.objects.get()
    assert (line.verb, line.subject, line.actor) == ("enqueue", str(result.id), "anna")
    assert (line.reason, line.detail) == ("try", f"{log_in.name} on default")
    assert enqueue_by_hand(unique, ["a"], {}).id != enqueue_by_hand(noop, [], {}).id
    assert not enqueue_by_hand(unique, ["a"], {}).created
    assert Audit.objects.filter(verb="enqueue").count() == 3


def test_an_enqueue_by_hand_takes_no_lock_for_arguments_that_are_refused() -> None:
    with CaptureQueriesContext(connection) as queries, pytest.raises(ArgumentsDoNotBind):
        enqueue_by_hand(log_in, ["bob"], {})
    assert not [query for query in queries if "UPDATE" in query["sql"]]
