"""Limits over REST: shown with their keys, changed as they were seen, and those of queues."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import Fair, Sequence
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Audit, Limit, Queue, Task
from tests.api.conftest import ApiClient
from tests.engine.steps import end
from tests.engine.test_limits import take, two_a_key
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db
NAME = "tests.sample.tasks.add:a"


@pytest.fixture
def used() -> None:
    """A limit under which three run and two wait."""
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 1, 2)])
    take()
    take()


def test_limits_are_listed_with_what_runs_and_waits(used: None, root: ApiClient) -> None:
    [limit] = root.look("limits/").json()["results"]
    assert limit == root.look(f"limits/{NAME}/").json()
    assert (limit["concurrency"], limit["running"], limit["waiting"]) == (2, 3, 2)
    assert (limit["declared"], limit["is_overridden"]) == ({"concurrency": 2, "rate": None}, False)
    keys = root.look(f"limits/{NAME}/keys/").json()["results"]
    assert [(key["key"], key["running"], key["waiting"]) for key in keys] == [
        ("1", 2, 2), ("2", 1, 0),
    ]  # fmt: skip
    missing = root.look("limits/nowhere/")
    assert (missing.status_code, missing.json()["code"]) == (404, "limit_not_found")


def test_a_limit_is_changed_as_it_was_seen_and_reset(used: None, root: ApiClient) -> None:
    etag = root.look(f"limits/{NAME}/")["ETag"]
    body = {"concurrency": 3, "reason": "a fire"}
    changed = root.ask("PATCH", f"limits/{NAME}/", body, if_match=etag)
    assert changed.status_code == 200, changed.content
    assert (changed.json()["concurrency"], changed.json()["is_overridden"]) == (3, True)
    stale = root.ask("PATCH", f"limits/{NAME}/", {"concurrency": 4}, if_match=etag)
    assert stale.status_code == 412
    reset = root.act(f"limits/{NAME}/reset/")
    assert (reset.status_code, reset.json()["concurrency"]) == (200, 2)
    assert root.act(f"limits/{NAME}/reset/").status_code == 409
    assert list(Audit.objects.order_by("id").values_list("verb", "reason")) == [
        ("set", "a fire"), ("reset", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body", [{"concurrency": -1}, {"concurrency": 10_001}, {"rate": "0/m"}, {"rate": "5/m"}, {}]
)
def test_numbers_that_a_limit_cannot_have_are_refused(
    used: None, root: ApiClient, body: Any
) -> None:
    assert root.ask("PATCH", f"limits/{NAME}/", body).status_code == 422
    assert Limit.objects.get().concurrency_override is None


def test_a_queue_is_limited_and_its_limit_lifted(root: ApiClient) -> None:
    Queue.objects.create(name="mail")
    etag = root.look("queues/mail/")["ETag"]
    limit = {"concurrency": 20, "rate": "100/m"}
    limited = root.ask("PATCH", "queues/mail/", {"limit": limit}, if_match=etag)
    assert (limited.status_code, limited.json()["limit"]) == (200, limit)
    stale = root.ask("PATCH", "queues/mail/", {"limit": None}, if_match=etag)
    assert stale.status_code == 412
    assert root.look("limits/queue:mail/").json()["queue_name"] == "mail"
    elsewhere = root.ask("PATCH", "limits/queue:mail/", {"concurrency": 1})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (409, "limit_of_queue")
    assert root.ask("PATCH", "queues/mail/", {"limit": {}}).status_code == 422
    lifted = root.ask("PATCH", "queues/mail/", {"limit": None})
    assert lifted.json()["limit"] is None
    assert root.look("limits/").json()["results"] == []


def test_a_halted_sequence_is_released(root: ApiClient) -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed = ordered.enqueue(1)
    ordered.enqueue(1, 2)
    end(take()[0], OutcomeKind.FAILED)
    take()
    shown = root.look(f"tasks/{failed.id}/").json()
    assert shown["sequence"] == {"name": add.name, "key": "1", "halts": True}
    assert (shown["concurrency"], shown["requires"], shown["cost"]) == ([], [], 1)
    assert root.act(f"tasks/{failed.id}/release/").status_code == 200
    assert root.act(f"tasks/{failed.id}/release/").status_code == 409
    assert len(take()) == 1
    assert Task.objects.filter(status="running").count() == 1


def test_the_shares_of_tenants_are_shown(root: ApiClient) -> None:
    add.using(fair=Fair("a", weight=2)).enqueue_many([((key,), {}) for key in (1, 1, 2)])
    take(1)
    Queue.objects.create(name="default")
    told = root.look("queues/default/fairness/").json()
    assert (told["queue_name"], told["index"]) == ("default", 0.5)
    assert {(each["key"], each["weight"], each["starts"]) for each in told["tenants"]} == {
        ("1", 2.0, 1),
        ("2", 2.0, 0),
    } or {(each["key"], each["starts"]) for each in told["tenants"]} == {("1", 0), ("2", 1)}
    assert root.look("queues/nowhere/fairness/").status_code == 404


def test_a_task_type_tells_what_limits_it(root: ApiClient) -> None:
    told = root.look("task-types/tests.sample.tasks.greet/").json()
    assert (told["limits"], told["is_fair"], told["is_sequence"], told["requires"]) == (
        [], False, False, [],
    )  # fmt: skip
