"""A rule about what the doctor finds, and the doctor's findings about alerts."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils.translation import override

from taskqueue import alerts
from taskqueue.declarations.own_tasks import HEARTBEAT
from taskqueue.engine.examinations import Note, keep
from taskqueue.models import Incident, Task, Worker
from taskqueue.monitoring.alerts.sentences import translated, translated_remedy
from taskqueue.monitoring.doctor import examine
from taskqueue.monitoring.doctor.words import gettext, short_duration, words_of
from taskqueue.monitoring.notices import ERROR, notices
from taskqueue.worker.bodies.examining import run
from tests.alerts.steps import look_now, mails, make_rule, open_incidents
from tests.monitoring.rows import HOUR, ago, make_task, make_worker

pytestmark = pytest.mark.django_db


def test_a_rule_about_the_doctor_follows_what_workers_find() -> None:
    make_worker()
    make_rule("doctor", "doctor")
    overdue = make_task("scheduled", run_after=ago(HOUR))
    look_now()
    assert open_incidents() == []
    run("w1", host="web-1")
    look_now()
    assert ("duties", "firing") in open_incidents()
    assert mails() == [["raised"] * len(open_incidents())]
    Task.objects.filter(id=overdue.id).delete()
    look_now()
    assert ("duties", "firing") in open_incidents()
    run("w1", host="web-1")
    for _ in range(2):
        look_now()
    assert "duties" not in dict(open_incidents())


def test_an_alert_about_a_finding_is_shown_in_the_language_of_its_reader() -> None:
    make_worker()
    make_rule("doctor", "doctor")
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    look_now()
    incident = Incident.objects.get(subject="duties")
    assert incident.summary.startswith("A task has been due for 60 min")
    with override("zh-hans"):
        told = translated(incident.words, ""), translated_remedy(incident.words, "")
    assert told[0].startswith("有任务已到期 60 分钟")
    assert "工作进程" in told[1]


def test_an_acknowledged_finding_is_no_notice_any_more() -> None:
    make_worker()
    make_rule("doctor", "doctor")
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    look_now()
    assert "duties" in {notice.subject for notice in notices() if notice.code == "doctor"}
    alerts.acknowledge(Incident.objects.get(subject="duties").pk, by="ann")
    assert "duties" not in {notice.subject for notice in notices()}


def test_a_finding_of_the_doctor_stops_a_heartbeat_only_by_an_alert() -> None:
    def is_called() -> bool:
        look_now()
        return Task.objects.filter(name=HEARTBEAT["name"]).delete()[0] > 0

    make_worker()
    make_rule("beat", "heartbeat", url="https://watcher.example/")
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    assert {notice.level for notice in notices() if notice.code == "doctor"} == {ERROR}
    assert is_called(), "no rule asks for the doctor's findings"
    make_rule("doctor", "doctor")
    is_called()  # The heartbeat may be checked before the new rule.
    assert not is_called()
    alerts.silence("doctor", until=HOUR)
    assert is_called()


def test_each_finding_of_one_system_check_is_an_alert_and_acknowledged_alone() -> None:
    make_rule("doctor", "doctor")
    first, second = (
        Note(
            check="settings", subject="taskqueue.E004", severity="problem", seen=seen, remedy="",
            words={}, host="", is_notice=False, since=ago(HOUR).isoformat(),
            at=ago(HOUR).isoformat(),
        )
        for seen in ("a cannot work.", "b cannot work.")
    )  # fmt: skip
    keep(connection, [first], worker_name="w1", host="web-1")
    look_now()
    alerts.acknowledge(Incident.objects.get().pk, by="ann")
    keep(connection, [first, second], worker_name="w1", host="web-1")
    assert [each.detail for each in notices() if each.code == "doctor"] == ["b cannot work."]
    look_now()
    assert sorted(Incident.objects.values_list("summary", flat=True)) == [
        "a cannot work.", "b cannot work.",
    ]  # fmt: skip


@pytest.mark.parametrize(("language", "age"), [("en", "2 h"), ("zh-hans", "2 小时")])
def test_a_text_of_the_doctor_can_be_translated_later(language: str, age: str) -> None:
    text = "The oldest waits {age}, {subject}: {number}."
    with override("en"):
        seen = gettext(text).format(age=short_duration(7200), subject="a b", number=3)
        remedy = gettext("See {subject}.").format(subject="a b")
        other = gettext("See {number}.").format(number=4)
    with override(language):
        assert translated(words_of(seen, remedy), "") == f"The oldest waits {age}, a b: 3."
        assert translated_remedy(words_of(seen, remedy), "") == "See 'a b'."
        assert translated_remedy(words_of(seen, "{'alias'}"), "") == "{'alias'}"
    assert words_of(seen, other) == words_of("plain", remedy) == {}


def findings() -> dict[str, str]:
    """What the doctor says of alerts."""
    return {each.seen: each.severity for each in examine() if each.check == "alerts"}


def test_the_doctor_says_nothing_of_alerts_where_there_is_no_rule() -> None:
    make_worker(status="stopped")
    assert findings() == {}


def test_the_doctor_warns_of_an_internal_queue_that_is_paused_limited_or_not_served() -> None:
    from taskqueue.engine.control.limits import limit_queue
    from taskqueue.engine.control.queues import pause, resume

    make_worker()
    make_rule()
    assert findings() == {"Alert rules: 1; their messages go out.": "ok"}
    pause("default")
    assert "The queue default is paused" in next(iter(findings()))
    resume("default")
    limit_queue("default", concurrency=3)
    assert list(findings().values()) == ["warning"]
    limit_queue("default")
    Worker.objects.update(queues={"web": 1})
    assert findings() == {
        "No running worker serves the queue default, on which messages of alerts wait.": "problem"
    }
