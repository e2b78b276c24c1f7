"""Paused definitions, and a pause of everything: no claim that begins later takes their tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue import InvalidTask, TransitionRefused
from taskqueue.control import pause_all, pause_definition, resume_all, resume_definition
from taskqueue.engine.apart import claim_apart
from taskqueue.engine.connections import transaction as own_transaction
from taskqueue.engine.control.pauses import lift_pauses
from taskqueue.engine.forecast import ready_queues
from taskqueue.exceptions import ChangedMeanwhile
from taskqueue.models import Audit, Pause
from tests.engine.steps import LEASE, another_connection, claim, claim_one, past, task_of
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, ...]]:
    lines = Audit.objects.order_by("id")
    return list(lines.values_list("noun", "verb", "subject", "actor", "reason", "before"))


def test_tasks_of_a_paused_definition_are_left_to_wait_and_others_are_claimed() -> None:
    paused, other = noop.enqueue(), add.enqueue(1, 2)
    pause_definition(noop.name, by="anna", reason="a bug")
    assert [task.task_id for task in claim(5)] == [str(other.id)]
    assert task_of(paused).status == "ready"
    resume_definition(noop.name, by="ben", reason="fixed")
    assert claim_one().task_id == str(paused.id)
    assert audited() == [
        ("definition", "pause", noop.name, "anna", "a bug", ""),
        ("definition", "resume", noop.name, "ben", "fixed", "paused"),
    ]


def test_while_everything_is_paused_nothing_is_claimed() -> None:
    noop.enqueue()
    add.using(queue_name="mail").enqueue(1, 2)
    pause_all(by="anna", reason="an incident")
    assert claim(5) == claim(5, queue="mail") == []
    assert ready_queues(connection) == []
    assert claimed_apart() == []
    resume_all(by="ben")
    assert len(claim(5) + claim(5, queue="mail")) == 2
    assert audited() == [
        ("queue", "pause_all", "all queues", "anna", "an incident", ""),
        ("queue", "resume_all", "all queues", "ben", "", "paused"),
    ]


def claimed_apart() -> list[Any]:
    with own_transaction(connection):
        return claim_apart(
            connection, worker="w1", queue_names=["default"], unknown=[], limit=9,
            lease_duration=LEASE,
        )  # fmt: skip


@pytest.mark.parametrize("pause", [pause_all, lambda: pause_definition(noop.name)])
def test_a_pause_holds_for_tasks_of_named_workers_too(pause: Any) -> None:
    noop.using(worker_names=["w1"]).enqueue()
    pause()
    assert claimed_apart() == []
    Pause.objects.all().delete()
    assert len(claimed_apart()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_begins_after_the_pause_takes_nothing_whatever_it_knew_before() -> None:
    noop.enqueue_many([((), {})] * 4)
    with another_connection() as worker:
        assert len(claim(1, connection=worker)) == 1
        pause_definition(noop.name)
        assert claim(3, connection=worker) == []
        resume_definition(noop.name)
        assert len(claim(1, connection=worker)) == 1
        pause_all()
        assert claim(2, connection=worker) == []


@pytest.mark.parametrize("name", ["", noop.name])
def test_a_pause_ends_by_itself_at_its_end(name: str) -> None:
    noop.enqueue()
    if name:
        pause_definition(name, until=3600)
    else:
        pause_all(until=timedelta(hours=1))
    assert claim(1) == []
    assert lift_pauses(connection) == 0
    Pause.objects.update(paused_until=past())
    assert len(claim(1)) == 1
    assert lift_pauses(connection) == 1
    assert not Pause.objects.exists()


def test_pausing_again_replaces_time_and_reason() -> None:
    pause_definition(noop.name, until=60, by="anna", reason="one")
    pause_definition(noop.name, by="ben", reason="two")
    pause = Pause.objects.get()
    assert (pause.paused_until, pause.paused_by, pause.pause_reason) == (None, "ben", "two")
    assert audited()[1][-1] == "paused"


@pytest.mark.parametrize("name", ["", "two words", 5, None, "x" * 256])
def test_an_invalid_definition_name_cannot_be_paused(name: Any) -> None:
    with pytest.raises(InvalidTask, match="is not the name of a definition"):
        pause_definition(name)
    assert not Pause.objects.exists()


def test_a_pause_that_would_be_over_is_refused() -> None:
    with pytest.raises(InvalidTask, match="until must be in the future"):
        pause_definition(noop.name, until=past())
    with pytest.raises(InvalidTask, match="until must be in the future"):
        pause_all(until=past())


def test_a_definition_that_is_not_paused_cannot_be_resumed() -> None:
    with pytest.raises(TransitionRefused, match="Not everything is paused"):
        resume_all()
    pause_definition("shop.tasks.export")
    with pytest.raises(
        TransitionRefused, match=r"is not paused\. Did you mean 'shop\.tasks\.export'"
    ):
        resume_definition("shop.tasks.exprt")
    pause_all()
    resume_all()
    assert Pause.objects.get().name == "shop.tasks.export"


def test_one_that_is_not_as_it_was_seen_is_left() -> None:
    pause_definition(noop.name, reason="one")
    with pytest.raises(ChangedMeanwhile):
        resume_definition(noop.name, seen={"pause_reason": "two"})
    assert Pause.objects.exists()
