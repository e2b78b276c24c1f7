"""Broadcasts leave out workers that have no slots for the definition."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.broadcast import release_gone
from taskqueue.models import Worker
from tests.engine.steps import end, policy
from tests.engine.test_apart import alive, row, take
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)

NONE = {add.name: 0}


def test_a_broadcast_ends_without_a_worker_that_cannot_run_it() -> None:
    alive("a")
    alive("threads", definition_slots=NONE)
    alive("few", definition_slots={add.name: 1})
    result = add.using(broadcast=True).enqueue(1)

    end(take("a")[0], OutcomeKind.SUCCEEDED, return_value="1")
    assert row(result).worker_names == ["a", "few"]
    end(take("few")[0], OutcomeKind.SUCCEEDED, return_value="1")

    assert row(result).status == "succeeded"


def test_a_worker_that_cannot_run_a_broadcast_seats_those_that_can() -> None:
    alive("threads", definition_slots=NONE)
    result = add.using(broadcast=True).enqueue(1)
    assert take("threads", unknown=[add.name]) == []
    assert row(result).workers == 0
    alive("a")
    assert take("threads", unknown=[add.name]) == []

    end(take("a")[0], OutcomeKind.SUCCEEDED, return_value="1")

    assert row(result).status == "succeeded"


def test_a_worker_that_has_no_slots_for_a_broadcast_any_more_is_as_good_as_gone() -> None:
    for name in "ab":
        alive(name, started_at=timezone.now() - timedelta(minutes=2))
    result = add.using(broadcast=True).enqueue(1)
    end(take("a")[0], OutcomeKind.SUCCEEDED, return_value="1")
    assert release_gone(connections["default"], policy=policy())[0] == 0
    Worker.objects.filter(name="b").update(definition_slots=NONE)

    assert release_gone(connections["default"], policy=policy())[0] == 1

    assert row(result).status == "succeeded"
