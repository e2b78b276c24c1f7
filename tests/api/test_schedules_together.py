"""Requests about one schedule that meet each other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier

import pytest

from taskqueue.models import Audit, Schedule
from tests.api.tasks.test_together import logged_in
from tests.engine.steps import run_at_once
from tests.sample.tasks import greet

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_several_who_create_one_name_the_others_are_told_that_it_is_taken() -> None:
    clients, answers = logged_in(3), []
    together = Barrier(len(clients))
    rule = {"kind": "every", "interval": 60}
    body = {"name": "hourly", "task": greet.name, "args": ["Ann"], "rule": rule}

    def create(number: int) -> Callable[[], None]:
        def ask() -> None:
            together.wait(60)
            answers.append(clients[number].act("schedules/", body))

        return ask

    run_at_once([create(number) for number in range(len(clients))])
    told = sorted((each.status_code, each.json().get("code", "")) for each in answers)
    assert told == [(201, ""), (409, "schedule_exists"), (409, "schedule_exists")]
    assert (Schedule.objects.count(), Audit.objects.count()) == (1, 1)
