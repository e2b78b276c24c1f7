"""Changes of a running worker by people: stored, brought by a ping, acknowledged, audited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from taskqueue import InvalidTask, WorkerDoesNotExist
from taskqueue.control import change_worker
from taskqueue.engine import workers
from taskqueue.engine.registration import Registered, Registration
from taskqueue.engine.workers import Asked, Terms, Wanted
from taskqueue.exceptions import ChangedMeanwhile
from taskqueue.models import Audit, Worker
from taskqueue.monitoring.read_models.worker import worker_named
from tests.engine.test_workers import fall_silent, registered, row, touch

pytestmark = pytest.mark.django_db

TERMS: Terms = {
    "concurrency": 2, "queues": {"mail": 3}, "queue_slots": {"mail": 2}, "definition_slots": {},
    "queue_order": ["mail"], "is_strict": True,
}  # fmt: skip


def wanted_by_ping(own: Registration, answer: Registered) -> Wanted:
    asked = touch(own, answer)
    assert asked is not None
    assert asked.wanted is not None
    return asked.wanted


def take_up(own: Registration, answer: Registered, wanted: Wanted) -> None:
    workers.take_up(
        connection, worker_id=answer.id, incarnation=own.incarnation, at=wanted.at, terms=TERMS
    )


def test_a_ping_brings_a_change_until_the_worker_has_taken_it_up() -> None:
    own, answer = registered()
    change_worker("w1", concurrency=2, queues="mail=3@2", by="anna", reason="a sale")
    worker = row()
    assert (worker.wanted, worker.wanted_by, worker.wanted_reason) == (
        {"concurrency": 2, "queues": "mail=3@2"}, "anna", "a sale"
    )  # fmt: skip
    assert (worker.concurrency, worker.wanted_seen_at) == (4, None)
    wanted = wanted_by_ping(own, answer)
    assert wanted[:4] == (2, "mail=3@2", None, None)
    assert wanted_by_ping(own, answer) == wanted
    take_up(own, answer, wanted)
    worker = row()
    assert worker.wanted_seen_at >= worker.wanted_at
    assert (worker.concurrency, worker.queues, worker.queue_slots) == (2, {"mail": 3}, {"mail": 2})
    assert touch(own, answer) == Asked("", "", "")


def test_a_second_change_adds_to_the_first_and_is_to_be_taken_up_too() -> None:
    own, answer = registered()
    change_worker("w1", concurrency=2)
    first = wanted_by_ping(own, answer)
    change_worker("w1", definition_slots="shop.export=1")
    take_up(own, answer, first)
    assert row().wanted_seen_at is None
    second = wanted_by_ping(own, answer)
    assert second[:4] == (2, None, None, "shop.export=1")
    take_up(own, answer, second)
    assert row().wanted_seen_at is not None


def test_a_ping_brings_a_strict_order_which_the_row_then_tells() -> None:
    own, answer = registered()
    change_worker("w1", queues="mail,b,a", strict=True)
    wanted = wanted_by_ping(own, answer)
    assert (wanted.queues, wanted.strict) == ("mail=1,b=1,a=1", True)
    terms: Terms = {
        **TERMS,
        "queues": {"mail": 1, "b": 1, "a": 1},
        "queue_order": ["mail", "b", "a"],
    }
    workers.take_up(
        connection, worker_id=answer.id, incarnation=own.incarnation, at=wanted.at, terms=terms
    )
    assert row().is_strict is True
    shown = worker_named("w1")
    assert shown is not None
    assert (list(shown.weights), shown.is_strict) == (["mail", "b", "a"], True)


def test_a_strict_order_needs_queues_whenever_it_is_asked_for() -> None:
    registered()
    Worker.objects.update(queues={})
    with pytest.raises(InvalidTask, match="w1 is to empty its queues in their order: name them"):
        change_worker("w1", strict=True)
    change_worker("w1", strict=True, queues="mail")
    with pytest.raises(InvalidTask, match="name them too"):
        change_worker("w1", queues="")
    change_worker("w1", strict=False, queues="")
    assert row().wanted == {"queues": "", "strict": False}


def test_a_restart_ends_what_was_changed() -> None:
    registered()
    change_worker("w1", concurrency=2)
    fall_silent()
    own, answer = registered()
    worker = row()
    assert (worker.wanted, worker.wanted_at, worker.concurrency) == ({}, None, 4)
    assert touch(own, answer) == Asked("", "", "")


def test_a_change_is_audited() -> None:
    registered()
    change_worker("w1", queues="", definition_slots="a=1", by="anna", reason="a sale")
    line = Audit.objects.get()
    assert (line.noun, line.verb, line.subject, line.actor) == ("worker", "change", "w1", "anna")
    assert (line.reason, line.before) == ("a sale", "running")
    assert json.loads(line.detail) == {"queues": "", "definition_slots": "a=1"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "Nothing to change"),
        ({"concurrency": 0}, "from 1 to 1000, not 0"),
        ({"concurrency": 1001}, "from 1 to 1000"),
        ({"concurrency": True}, "a whole number, not True"),
        ({"concurrency": "4"}, "a whole number, not '4'"),
        ({"strict": "yes"}, "strict must be true or false, not 'yes'"),
        ({"queues": "two words"}, "not the name of a queue"),
        ({"queues": "mail@0"}, "The slots of 'mail', behind @, must be"),
        ({"queues": "mail=1,mail=2"}, "listed twice in queues"),
        ({"queues": ["mail"]}, "queues must be a text"),
        ({"queues": ","}, "names no queue"),
        ({"definition_slots": "shop.export"}, "must be a whole number from 0 to 10000, not ''"),
        ({"definition_slots": "shop export=1"}, "not the name of a definition"),
        ({"definition_slots": "a=1,a=2"}, "listed twice in definition_slots"),
        ({"definition_slots": ",".join(f"t{n}=1" for n in range(1001))}, "1000 are the most"),
        ({"queues": "x" * 20_001}, "20000 characters, not 20001"),
    ],
)
def test_an_invalid_change_of_a_worker_is_refused(changes: dict[str, Any], reason: str) -> None:
    registered()
    with pytest.raises(InvalidTask, match=reason):
        change_worker("w1", **changes)
    assert (row().wanted, Audit.objects.count()) == ({}, 0)


def test_only_workers_that_have_not_ended_are_changed() -> None:
    with pytest.raises(WorkerDoesNotExist, match="No worker is named 'w2'"):
        change_worker("w2", concurrency=2)
    registered()
    Worker.objects.update(status="stopped")
    with pytest.raises(WorkerDoesNotExist, match="'w1' is stopped"):
        change_worker("w1", concurrency=2)


def test_a_worker_that_is_not_as_it_was_seen_is_not_changed() -> None:
    registered()
    with pytest.raises(ChangedMeanwhile):
        change_worker("w1", concurrency=2, seen={"concurrency": 9})
    assert row().wanted == {}
