"""Duties that come every so many seconds ask for something only where there is work for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.tally import Tally
from taskqueue.models import CallCount, Depth, Pause, Task, Worker
from taskqueue.models.call_count import TurnedAway
from taskqueue.worker.duties import Duties
from tests.engine.steps import claim_one, end
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# What else an idle worker sends: a heartbeat every five seconds.
HEARTBEATS = 0.2


def duties() -> Duties:
    return Duties(get_settings(), worker_id=0, tally=Tally())


def test_an_idle_worker_sends_less_than_a_statement_a_second() -> None:
    end_a_task()
    own, start = duties(), time.monotonic()
    own.step(connection, start)
    with CaptureQueriesContext(connection) as queries:
        for second in range(2, 122, 2):
            own.step(connection, start + second)
    sent = [each["sql"] for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(sent) / 120 + HEARTBEATS <= 1, sent


def end_a_task() -> None:
    noop.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)


def prunable() -> None:
    end_a_task()
    Task.objects.update(prune_after=timezone.now() - DAY)


def counted() -> None:
    end_a_task()
    end_a_task()
    Task.objects.update(keep_last=1)


def worker(status: str, seen: timedelta) -> None:
    moment = timezone.now() - seen
    Worker.objects.create(
        name="other", host="host", pid=1, status=status, started_at=moment, seen_at=moment
    )


def old_depth(resolution: int, age: timedelta) -> None:
    moment = timezone.now().replace(minute=0, second=0, microsecond=0) - age
    Depth.objects.create(resolution=resolution, starts_at=moment, queue_name="default", waiting=1)


@pytest.mark.parametrize(
    ("prepare", "is_done"),
    [
        pytest.param(prunable, lambda: not Task.objects.exists(), id="retention"),
        pytest.param(counted, lambda: Task.objects.count() == 1, id="keep_last"),
        pytest.param(
            lambda: worker("running", timedelta(minutes=5)),
            lambda: Worker.objects.get().status == "lost",
            id="a lost worker",
        ),
        pytest.param(
            lambda: worker("stopped", 2 * DAY),
            lambda: not Worker.objects.exists(),
            id="a worker that is gone",
        ),
        pytest.param(
            lambda: Pause.objects.create(
                name="x", paused_at=timezone.now() - DAY, paused_until=timezone.now() - DAY
            ),
            lambda: not Pause.objects.exists(),
            id="a pause that is over",
        ),
        pytest.param(
            lambda: CallCount.objects.create(name="x", what=TurnedAway.REFUSED),
            lambda: CallCount.objects.get().is_sum,
            id="counts",
        ),
        pytest.param(
            lambda: None,
            lambda: Depth.objects.filter(resolution=60, queue_name="").exists(),
            id="depths",
        ),
        pytest.param(
            lambda: old_depth(60, timedelta(hours=4)),
            lambda: Depth.objects.filter(resolution=900, queue_name="default").exists(),
            id="depths of minutes",
        ),
        pytest.param(
            lambda: old_depth(3600, timedelta(days=91)),
            lambda: not Depth.objects.filter(queue_name="default").exists(),
            id="depths of three months ago",
        ),
    ],
)
def test_a_duty_is_served_where_there_is_something_for_it(
    prepare: Callable[[], object], is_done: Callable[[], bool]
) -> None:
    prepare()
    duties().step(connection, time.monotonic())
    assert is_done()
