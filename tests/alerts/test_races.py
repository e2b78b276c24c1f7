"""A database constraint also ensures one open incident for each subject, even without the lock."""

from __future__ import annotations

from collections import Counter
from threading import Barrier
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from taskqueue.alerts.duty import look
from taskqueue.core.alerts import Judged
from taskqueue.declarations.own_tasks import MAIL
from taskqueue.engine.alerts.incidents import follow
from taskqueue.engine.alerts.telling import tell
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import AlertRule, Incident, Task
from tests.alerts.steps import make_rule
from tests.engine.steps import run_at_once
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db(transaction=True)


class JudgedTogether(list[Judged]):
    """A judgement that is read once both transactions have found no open incident."""

    def __init__(self, judged: Judged, both: Barrier) -> None:
        super().__init__([judged])
        self._both = both

    def __getitem__(self, place: Any) -> Any:
        self._both.wait()
        return super().__getitem__(place)


def raise_at_once(rule: AlertRule) -> Counter[str]:
    """Raise the same alert in two transactions that see nothing of each other, without the lock."""
    both, ends = Barrier(2, timeout=60), Counter[str]()
    judged = JudgedTogether(Judged(subject="w1", summary="bad"), both)

    def step() -> None:
        from django.db import connection

        try:
            with transaction.atomic():
                now = dialect_for(connection).now(connection)
                follow(connection, rule, judged, now)
                tell(connection, rule, now)
            ends["raised"] += 1
        except IntegrityError:
            ends["refused"] += 1

    run_at_once([step, step])
    return ends


def faults() -> list[str]:
    """The subjects that have several open incidents, and how often each was told."""
    found = Counter(Incident.objects.filter(ended_at=None).values_list("subject", flat=True))
    messages = Task.objects.filter(name=MAIL["name"]).count()
    return [f"{subject} {number}" for subject, number in found.items() if number > 1] + (
        [f"{messages} messages"] if messages > 1 else []
    )


@pytest.mark.postgresql_only
def test_two_that_raise_the_same_past_the_lock_raise_and_tell_it_once() -> None:
    assert raise_at_once(make_rule()) == {"raised": 1, "refused": 1}
    assert faults() == []


@pytest.mark.postgresql_only
def test_without_the_unique_constraint_an_alert_would_be_raised_and_sent_twice() -> None:
    """The mistake that the constraint is there for, and that the check above sees."""
    constraint = next(
        each for each in Incident._meta.constraints if each.name == "taskqueue_incident_open"
    )
    with connection.schema_editor() as editor:
        editor.remove_constraint(Incident, constraint)
    try:
        assert raise_at_once(make_rule()) == {"raised": 2}
        assert faults() == ["w1 2", "2 messages"]
    finally:
        Incident.objects.all().delete()
        with connection.schema_editor() as editor:
            editor.add_constraint(Incident, constraint)


def test_workers_that_look_at_once_raise_and_tell_once() -> None:
    for number in range(3):
        make_worker(f"w{number}", trouble="no disk")
    make_rule()

    def step() -> None:
        from django.db import connection

        look(connection)

    run_at_once([step] * 4)
    assert Incident.objects.count() == 3
    assert faults() == []
