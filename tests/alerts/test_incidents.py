"""Incidents are raised, followed and cleared, and each of it is told once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from taskqueue import alerts
from taskqueue.core.alerts import Judged
from taskqueue.engine.alerts.incidents import settle
from taskqueue.engine.alerts.serving import take_up
from taskqueue.exceptions import AlertDoesNotExist, TransitionRefused
from taskqueue.models import AlertRule, Audit, Incident, Task, Worker
from tests.alerts.steps import (
    look_now,
    mails,
    make_rule,
    open_incidents,
    pass_time,
)
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db


def trouble(name: str = "w1", text: str = "no disk") -> None:
    Worker.objects.filter(name=name).update(trouble=text)


def test_a_condition_is_raised_and_cleared_and_each_is_reported_once() -> None:
    make_worker()
    make_rule()
    look_now()
    assert (open_incidents(), mails()) == ([], [])
    trouble()
    for _ in range(3):
        look_now()
        pass_time(15)
    assert open_incidents() == [("w1", "firing")]
    assert mails() == [["raised"]]
    trouble(text="")
    pass_time(300)
    look_now()
    assert open_incidents() == [("w1", "firing")]  # One good look may be chance.
    look_now()
    assert open_incidents() == []
    look_now()
    assert mails() == [["raised"], ["cleared"]]
    (incident,) = Incident.objects.all()
    assert incident.is_settled
    assert incident.summary == "The worker w1 is in trouble: no disk"


def test_messages_go_first_on_the_internal_queue() -> None:
    make_worker()
    make_rule()
    trouble()
    assert look_now()
    (task,) = Task.objects.all()
    assert (task.queue_name, task.priority, task.status) == ("default", 100, "ready")


def test_a_condition_has_to_hold_for_as_long_as_the_rule_says() -> None:
    make_worker()
    make_rule(wait=900)
    trouble()
    look_now()
    assert (open_incidents(), mails()) == ([("w1", "pending")], [])
    pass_time(600)
    look_now()
    assert open_incidents() == [("w1", "pending")]
    pass_time(300)
    look_now()
    assert (open_incidents(), mails()) == ([("w1", "firing")], [["raised"]])


def test_one_look_without_the_condition_does_not_begin_it_anew() -> None:
    make_worker()
    make_rule(wait=900)
    trouble()
    look_now()
    pass_time(600)
    trouble(text="")
    look_now()
    assert open_incidents() == []  # Nobody has heard of it.
    trouble()
    look_now()
    pass_time(600)
    look_now()
    assert open_incidents() == [("w1", "pending")]


def test_alerts_within_five_minutes_share_one_message() -> None:
    for number in range(4):
        make_worker(f"w{number}")
    make_rule()
    trouble("w0")
    look_now()
    for name in ("w1", "w2", "w3"):
        pass_time(60)
        trouble(name)
        look_now()
    assert mails() == [["raised"]]
    pass_time(120)
    look_now()
    assert mails() == [["raised"], ["raised"] * 3]


def test_an_alert_that_ends_before_its_message_is_reported_as_passed() -> None:
    for name in ("w1", "w2"):
        make_worker(name)
    make_rule()
    trouble("w1")
    look_now()
    trouble("w2")
    look_now()
    trouble("w2", "")
    look_now()
    look_now()
    pass_time(300)
    look_now()
    assert mails() == [["raised"], ["passed"]]


def test_a_continuing_alert_is_repeated_after_the_time_of_the_rule() -> None:
    make_worker()
    make_rule(repeat=1800)
    trouble()
    look_now()
    pass_time(1500)
    look_now()
    assert mails() == [["raised"]]
    pass_time(300)
    look_now()
    assert mails() == [["raised"], ["reminder"]]


def test_an_acknowledged_alert_is_not_repeated_but_its_end_is_reported() -> None:
    make_worker()
    make_rule(repeat=600)
    trouble()
    look_now()
    incident = Incident.objects.get()
    alerts.acknowledge(incident.pk, by="ann", reason="on it")
    pass_time(6000)
    look_now()
    assert mails() == [["raised"]]
    with pytest.raises(TransitionRefused, match="acknowledged already, by ann"):
        alerts.acknowledge(incident.pk, by="bob")
    trouble(text="")
    look_now()
    look_now()
    assert mails() == [["raised"], ["cleared"]]
    with pytest.raises(TransitionRefused, match="is over"):
        alerts.acknowledge(incident.pk)
    entry = Audit.objects.get(noun="alert")
    assert (entry.actor, entry.verb, entry.reason) == ("ann", "acknowledge", "on it")
    assert entry.detail == "rule: w1"


def test_a_pending_condition_is_no_alert_yet() -> None:
    make_worker()
    make_rule(wait=60)
    trouble()
    look_now()
    with pytest.raises(AlertDoesNotExist):
        alerts.acknowledge(Incident.objects.get().pk)
    with pytest.raises(AlertDoesNotExist):
        alerts.acknowledge("x")


def test_a_silenced_rule_tells_nobody_until_its_silence_ends() -> None:
    for name in ("w1", "w2"):
        make_worker(name)
    make_rule()
    alerts.silence("rule", until=timedelta(hours=1), by="ann", reason="deploy")
    trouble("w1")
    trouble("w2")
    look_now()
    assert (open_incidents(), mails()) == ([("w1", "firing"), ("w2", "firing")], [])
    trouble("w1", "")
    look_now()
    look_now()
    pass_time(3601)
    look_now()
    assert mails() == [["raised"]]  # Of what is over nobody has to hear.
    assert Incident.objects.get(subject="w1").is_settled


def test_the_end_of_a_silence_reports_alerts_that_cleared_but_none_twice() -> None:
    for name in ("w1", "w2"):
        make_worker(name)
        trouble(name)
    make_rule()
    look_now()
    alerts.silence("rule", until=timedelta(hours=1))
    trouble("w1", "")
    look_now()
    look_now()
    pass_time(3601)
    look_now()
    assert mails() == [["raised", "raised"], ["cleared"]]


def test_a_rule_without_channels_is_followed_too() -> None:
    make_worker()
    make_rule(mail=[])
    trouble()
    look_now()
    trouble(text="")
    look_now()
    look_now()
    (incident,) = Incident.objects.all()
    assert (incident.status, incident.is_settled) == ("ended", True)
    assert not Task.objects.exists()


def test_a_disabled_rule_is_not_looked_at_and_its_incidents_end_untold() -> None:
    make_worker()
    make_rule()
    trouble()
    look_now()
    alerts.edit("rule", enabled=False)
    assert open_incidents() == []
    pass_time(600)
    assert not look_now()
    assert mails() == [["raised"]]
    alerts.edit("rule", enabled=True)
    look_now()
    assert mails() == [["raised"], ["raised"]]


def test_the_verdict_of_a_frozen_worker_is_dropped_after_others_have_judged() -> None:
    make_worker()
    make_rule()
    (rule,), taken_at = take_up(connection)
    assert take_up(connection).rules == []
    look_now()
    # It wakes, and what it saw is over.
    assert not settle(connection, rule, [judged_of("w1")], taken_at=taken_at)
    assert open_incidents() == []


def test_the_verdict_of_a_slow_worker_counts_until_another_is_written() -> None:
    make_worker()
    make_rule()
    (rule,), taken_at = take_up(connection)
    AlertRule.objects.update(next_at=F("created_at"))
    (same,), later = take_up(connection)
    assert settle(connection, rule, [judged_of("w1")], taken_at=taken_at)
    assert open_incidents() == [("w1", "firing")]
    settle(connection, same, [], taken_at=later)
    assert not settle(connection, rule, [judged_of("w1")], taken_at=taken_at)
    assert Incident.objects.get().good_looks == 1


def test_an_old_judgement_changes_nothing() -> None:
    make_worker()
    make_rule()
    (rule,), taken_at = take_up(connection)
    late = taken_at - timedelta(seconds=301)
    assert not settle(connection, rule, [judged_of("w1")], taken_at=late)
    assert open_incidents() == []


def test_a_verdict_from_before_a_change_of_the_rule_is_dropped() -> None:
    make_worker()
    make_rule()
    (rule,), taken_at = take_up(connection)
    alerts.edit("rule", wait=60)
    assert not settle(connection, rule, [judged_of("w1")], taken_at=taken_at)
    assert open_incidents() == []


def test_a_second_open_incident_of_a_rule_and_subject_is_refused() -> None:
    rule = make_rule()
    fields = {"rule": rule, "subject": "w1", "status": "firing", "began_at": rule.created_at}
    Incident.objects.create(**fields)
    with pytest.raises(IntegrityError), transaction.atomic():
        Incident.objects.create(**fields)
    Incident.objects.update(ended_at=rule.created_at, status="ended")
    Incident.objects.create(**fields)


def test_a_rule_that_cannot_be_judged_says_why_and_keeps_nobody_from_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_worker()
    make_rule("a broken one", "workflow_slow")
    make_rule("b", "worker_trouble")
    trouble()
    monkeypatch.setattr("taskqueue.monitoring.alerts.situation.slow_workflows", lambda: 1 / 0)
    look_now()
    assert open_incidents() == [("w1", "firing")]
    broken = AlertRule.objects.get(name="a broken one")
    assert broken.trouble == "ZeroDivisionError: division by zero"
    assert "Alert rule not judged rule=a broken one" in caplog.text
    monkeypatch.undo()
    look_now()
    broken.refresh_from_db()
    assert broken.trouble == ""


def judged_of(subject: str) -> Judged:

    return Judged(subject=subject, summary=f"{subject} is bad")
