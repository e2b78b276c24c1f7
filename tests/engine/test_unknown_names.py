"""Pausing an unknown name works, with a warning."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue.control import limit_queue, pause, pause_definition
from taskqueue.engine.control.unknown_names import unknown_definitions, unknown_queue
from taskqueue.engine.totals import REST, add_arrivals
from taskqueue.models import Arrival, Pause, Queue, Total
from taskqueue.models.rollup import NAME, QUEUE
from tests.engine.test_workers import registered
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
MISTYPED = noop.name + "p"
# No definition of another test names such a queue.
OWN, MISTYPED_OWN = "unheard-of", "unheared-of"


def hint_of(name: str) -> str:
    return unknown_definitions(connection, [name]).get(name, "")


def test_an_unknown_definition_is_paused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    pause_definition(MISTYPED)
    assert Pause.objects.get().name == MISTYPED
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert f"Did you mean {noop.name!r}?" in record.getMessage()


def test_an_unknown_queue_is_paused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    noop.using(queue_name=OWN).enqueue()
    add_arrivals(connection)
    for name in (MISTYPED_OWN, MISTYPED_OWN[:-1]):  # The second is nearer to the first than to OWN.
        pause(name)
    assert Queue.objects.filter(paused_at__isnull=False).count() == 2
    for record in caplog.records:
        assert f"Did you mean {OWN!r}?" in record.getMessage()


def test_an_unknown_queue_is_limited_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    limit_queue("defaul", concurrency=1)
    assert "Did you mean 'default'?" in caplog.records[0].getMessage()


def test_a_known_name_is_paused_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    noop.using(queue_name=OWN).enqueue()
    pause_definition(noop.name)
    pause(OWN)
    pause("default")
    assert not caplog.records


def test_names_of_tasks_that_other_code_has_are_known() -> None:
    assert hint_of("shop.export")
    assert unknown_queue(connection, OWN)
    Arrival.objects.create(id=0, name="shop.export", queue_name=OWN, number=1)
    assert not hint_of("shop.export")
    assert not unknown_queue(connection, OWN)
    add_arrivals(connection)
    assert not Arrival.objects.exists()
    assert not hint_of("shop.export")
    assert not unknown_queue(connection, OWN)


def test_a_queue_that_a_worker_names_is_known() -> None:
    registered(queues={OWN: 1})
    assert not unknown_queue(connection, OWN)
    assert f"Did you mean {OWN!r}?" in unknown_queue(connection, MISTYPED_OWN)


def test_where_there_are_too_many_names_none_is_called_unknown() -> None:
    Total.objects.create(kind=NAME, label=REST)
    Total.objects.create(kind=QUEUE, label=REST)
    assert not hint_of("shop.export")
    assert not unknown_queue(connection, OWN)
