"""A rule that runs the doctor, and the doctor's findings about alerts."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from taskqueue.declarations.own_tasks import EXAMINATION
from taskqueue.models import (
    AlertRule,
    Incident,
    Task,
    Worker,
)
from taskqueue.monitoring.alerts.sentences import translated, translated_remedy
from taskqueue.monitoring.doctor import examine
from taskqueue.monitoring.doctor.words import gettext, short_duration, words_of
from tests.alerts.steps import look_now, mails, make_rule, open_incidents, pass_time
from tests.monitoring.rows import HOUR, ago, make_task, make_worker

pytestmark = pytest.mark.django_db


def test_the_doctor_is_asked_hourly_in_a_task_and_more_often_while_it_has_found_something() -> None:
    make_worker()
    make_rule("doctor", "doctor")

    def examinations() -> int:
        return Task.objects.filter(name=EXAMINATION["name"]).count()

    overdue = make_task("scheduled", run_after=ago(HOUR))
    look_now()
    assert (examinations(), open_incidents()) == (1, [])
    AlertRule.objects.update(found=findings_now())
    look_now()
    assert open_incidents() == [("duties", "firing")]
    assert mails() == [["raised"]]
    pass_time(400)
    look_now()
    assert examinations() == 1
    pass_time(200)
    look_now()
    assert examinations() == 2
    Task.objects.filter(id=overdue.id).delete()
    for _ in range(2):
        AlertRule.objects.update(found=findings_now())
        look_now()
    assert open_incidents() == []
    pass_time(300)
    look_now()
    assert mails() == [["raised"], ["cleared"]]


def findings_now() -> list[dict[str, str]]:
    """What the doctor finds about duties, as its task keeps it."""
    return [
        {"check": each.check, "subject": each.subject, "seen": each.seen, "remedy": each.remedy}
        for each in examine()
        if each.severity == "problem" and each.check == "duties"
    ]


def test_the_task_of_an_examination_keeps_what_it_found() -> None:
    make_worker()
    rule = make_rule("doctor", "doctor")
    make_task("scheduled", run_after=ago(HOUR))
    look_now()
    task = Task.objects.get(name=EXAMINATION["name"])
    from taskqueue.alerts.tasks import examine as body

    body(rule.pk)
    rule.refresh_from_db()
    assert task.kwargs == {"rule": rule.pk}
    assert "duties" in {each["check"] for each in rule.found}
    look_now()
    incident = Incident.objects.get(subject="duties")
    assert incident.summary.startswith("A task has been due for 60 min")
    with override("zh-hans"):
        told = translated(incident.words, ""), translated_remedy(incident.words, "")
    assert told[0].startswith("有任务已到期 60 分钟")
    assert "工作进程" in told[1]


@pytest.mark.parametrize(("language", "age"), [("en", "2 h"), ("zh-hans", "2 小时")])
def test_a_text_of_the_doctor_is_told_in_other_languages_later(language: str, age: str) -> None:
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
