"""Findings of the doctor are notices in every face, kept since a worker last ran it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue.engine.examinations import (
    EVERY,
    IS_OLD,
    IS_REQUESTED,
    LATE,
    MOST,
    Note,
    keep,
    merged,
    request_examination,
    take_turn,
)
from taskqueue.engine.forecast import promote
from taskqueue.models import AlertRule, Examination, Incident, Worker
from taskqueue.monitoring.doctor import Finding, Severity, examine
from taskqueue.monitoring.doctor.finding import Check
from taskqueue.monitoring.doctor.keeping import notes_of
from taskqueue.monitoring.doctor.words import gettext
from taskqueue.monitoring.doctor.work import look_at_work
from taskqueue.monitoring.health import Wanted, probe
from taskqueue.monitoring.metrics.collector import of_examinations, of_notices
from taskqueue.monitoring.notices import Notice, Situation, notices, visible_to
from taskqueue.monitoring.overview import overview
from taskqueue.worker.bodies.examining import run
from tests.monitoring.rows import HOUR, MINUTE, ago, make_schedule, make_task, make_worker

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def note(**fields: Any) -> Note:
    values: Any = {
        "check": "server", "severity": "problem", "subject": "fsync", "seen": "It is odd.",
        "remedy": "Mend.", "words": {}, "is_notice": False, "host": "", "since": "", "at": "",
    }  # fmt: skip
    return Note(**{**values, **fields})


def found_by_the_doctor(*found: Note, host: str = "web-1") -> None:
    keep(connection, found, worker_name="w1", host=host)


def of_doctor() -> list[Notice]:
    return [notice for notice in notices() if notice.code == "doctor"]


# From findings to notices


def test_warnings_and_problems_are_notices_unless_another_notice_says_the_same() -> None:
    make_worker()
    found_by_the_doctor(
        note(severity="warning", check="indexes", subject="taskqueue_task_claim"),
        note(),
        note(check="queues", subject="mail", is_notice=True),
    )
    error, warning = notices()
    assert (error.code, error.level, error.subject) == ("doctor", "error", "server: fsync")
    assert (error.sentence, error.remedy) == ("The doctor found: It is odd.", "Mend.")
    assert (warning.level, warning.subject) == ("warning", "indexes: taskqueue_task_claim")
    # The doctor does not find it again because it found it once.
    assert all("It is odd" not in finding.seen for finding in look_at_work(connection))


def test_an_acknowledged_alert_about_a_finding_silences_its_notice() -> None:
    make_worker()
    rule = AlertRule.objects.create(name="default doctor", kind="doctor")
    alert = {"rule": rule, "status": "firing", "began_at": ago(HOUR), "subject": "server: fsync"}
    incident = Incident.objects.create(**alert)
    found_by_the_doctor(note(words={"text": "It is odd."}))
    assert len(notices()) == 1
    Incident.objects.update(acknowledged_at=ago(MINUTE))
    assert notices() == []
    Incident.objects.filter(id=incident.id).update(
        status="ended", ended_at=ago(timedelta(0)), is_settled=True
    )
    assert len(notices()) == 1


def test_a_finding_that_depends_on_the_host_names_every_host_where_it_was_found() -> None:
    for number in range(5):
        host = f"web-{number}"
        make_worker(host, host=host)
        found_by_the_doctor(note(check="settings", subject="W001", host=host), host=host)
    found_by_the_doctor(note(check="clocks", subject="web-4", host="web-4"), host="web-4")
    assert {(each.subject, each.sentence, each.count) for each in of_doctor()} == {
        ("settings: W001", "The doctor found on web-0, web-1, web-2, +1: It is odd.", 4),
        ("clocks: web-4", "The doctor found on web-4: It is odd.", 1),
    }


def test_two_findings_of_one_system_check_are_two_notices() -> None:
    make_worker("w1", host="web-1")
    fields: Any = {"check": "settings", "subject": "W003", "host": "web-1"}
    found_by_the_doctor(note(seen="One is odd.", **fields), note(seen="Two is odd.", **fields))
    assert [each.detail for each in of_doctor()] == ["One is odd.", "Two is odd."]
    since = {each["seen"]: each["since"] for each in kept()}
    found_by_the_doctor(note(seen="Two is odd.", **fields), note(seen="Three is odd.", **fields))
    assert {each["seen"]: each["since"] == since.get(each["seen"]) for each in kept()} == {
        "Two is odd.": True, "Three is odd.": False,
    }  # fmt: skip


def kept() -> list[Note]:
    return list(Examination.objects.get().findings)


def test_the_remedy_is_in_the_language_of_the_reader() -> None:
    from django.utils.translation import override

    make_worker()
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    (notice,) = (each for each in of_doctor() if each.subject == "duties")
    with override("zh-hans"):
        assert "工作进程" in notice.translated_remedy


@pytest.mark.parametrize(
    ("permissions", "seen"),
    [
        ({"view_task", "view_worker"}, {"server: fsync"}),
        ({"view_task", "view_worker", "view_schedule"}, {"server: fsync", "duties"}),
        ({"view_task", "view_schedule"}, set()),
    ],
)
def test_a_notice_is_for_those_who_may_see_the_finding(
    permissions: set[str], seen: set[str]
) -> None:
    class Viewer:
        def has_perm(self, name: str) -> bool:
            return name.removeprefix("taskqueue.") in permissions

    make_worker()
    found_by_the_doctor(note(), note(check="duties", subject=""))
    assert {each.subject for each in visible_to(Viewer(), notices())} == seen


def test_every_face_tells_of_a_finding() -> None:
    make_worker()
    found_by_the_doctor(note())
    assert [each.code for each in overview().notices] == ["doctor"]
    (check,) = (each for each in probe(Wanted(notices="error")).checks if not each.is_ok)
    assert (check.name, check.detail) == ("doctor server: fsync", "The doctor found: It is odd.")
    (gauge,) = of_notices(notices())
    counted = {sample.labels["level"]: sample.value for sample in gauge.samples
               if sample.labels["kind"] == "doctor"}  # fmt: skip
    assert counted == {"error": 1, "warning": 0}


def test_findings_tell_their_age_once_no_worker_runs_the_doctor_any_more() -> None:
    make_worker()
    found_by_the_doctor(note(), note(check="clocks", subject="", host="web-1"))
    (unsampled,) = of_examinations(None)
    assert unsampled.samples == []
    assert {each.sentence for each in of_doctor()} == {
        "The doctor found: It is odd.", "The doctor found on web-1: It is odd.",
    }  # fmt: skip
    at = ago(timedelta(seconds=LATE) + MINUTE)
    Examination.objects.update(examined_at=at)
    assert {each.sentence for each in of_doctor()} == {
        "The doctor found 31 min ago: It is odd.",
        "The doctor found on web-1 31 min ago: It is odd.",
    }
    details = [check.detail for check in probe(Wanted(notices="error")).checks]
    assert "The doctor found 31 min ago: It is odd." in details
    (gauge,) = of_examinations(Situation().standing.examined)
    assert [sample.value for sample in gauge.samples] == [at.timestamp()]


# What is kept


def test_only_what_needs_attention_is_kept() -> None:
    check = Check("server")
    found = [
        check.ok("Fine."), check.info("So.", ""), check.warning("Slow.", ""),
        check.problem("Off.", ""), Check("settings").warning("DEBUG is on.", "", "DEBUG"),
    ]  # fmt: skip
    assert [each["seen"] for each in notes_of(found, host="web-1")] == ["Slow.", "Off."]


def test_findings_about_a_process_or_its_host_say_on_which_host_they_were_made() -> None:
    found = [
        Finding(check=check, severity=Severity.WARNING, seen="Odd.")
        for check in ("clocks", "settings", "server")
    ]
    kept = notes_of(found, host="web-1")
    assert [(each["host"], each["subject"]) for each in kept] == [
        ("web-1", "web-1"), ("web-1", "web-1"), ("", ""),
    ]  # fmt: skip


def test_a_finding_is_known_again_although_its_numbers_have_changed() -> None:
    texts = [gettext("It is {age} behind.").format(age=age) for age in (3, 4)]
    first, second = (
        notes_of([Check("server").problem(text, "Mend.")], host="web-1") for text in texts
    )
    before = merged([], first, host="web-1", now=MOMENT)
    (again,) = merged(before, second, host="web-1", now=MOMENT + timedelta(minutes=5))
    assert (again["since"], again["seen"]) == (MOMENT.isoformat(), "It is 4 behind.")
    assert merged(before, [], host="web-1", now=MOMENT) == []


def test_findings_of_another_host_are_kept_for_an_hour() -> None:
    before = merged([], [note(host="web-1")], host="web-1", now=MOMENT)
    for minutes, number in ((59, 1), (61, 0)):
        now = MOMENT + timedelta(minutes=minutes)
        assert len(merged(before, [], host="web-2", now=now)) == number
    assert merged(before, [], host="web-1", now=MOMENT) == []


def test_findings_of_a_host_without_a_worker_are_not_kept() -> None:
    worker = make_worker("w1", host="web-1")
    found_by_the_doctor(note(check="clocks", host="web-1"), host="web-1")
    make_worker("w2", host="web-2")
    found_by_the_doctor(host="web-2")
    assert len(of_doctor()) == 1
    Worker.objects.filter(id=worker.id).update(status="stopped")
    found_by_the_doctor(host="web-2")
    assert of_doctor() == []


def test_of_too_many_findings_the_problems_are_kept() -> None:
    many = [note(severity="warning", subject=str(number)) for number in range(MOST)]
    kept = merged([], [*many, note()], host="web-1", now=MOMENT)
    assert len(kept) == MOST
    assert kept[0]["severity"] == "problem"


def test_overdue_schedules_are_one_notice_whatever_the_doctor_says() -> None:
    make_worker()
    make_schedule("nightly", next_at=ago(HOUR))
    run("w1", host="web-1")
    about = [each.code for each in notices() if "overdue" in each.sentence]
    assert about == ["schedule_overdue"]


# Whose turn it is


def is_called_for() -> tuple[bool, bool]:
    forecast = promote(connection, (IS_REQUESTED, IS_OLD), worker_id=0, limit=1)
    return forecast.holds(IS_REQUESTED), forecast.holds(IS_OLD)


def test_one_worker_examines_every_few_minutes_or_when_somebody_asks() -> None:
    assert is_called_for() == (False, True)
    assert take_turn(connection)
    assert not take_turn(connection)
    assert is_called_for() == (False, False)
    request_examination(connection)
    assert is_called_for() == (True, False)
    assert take_turn(connection)
    assert is_called_for() == (False, False)
    Examination.objects.update(begun_at=ago(timedelta(seconds=EVERY + 1)), requested_at=None)
    assert is_called_for() == (False, True)
    assert take_turn(connection)
    assert not take_turn(connection)


def test_somebody_may_ask_before_the_first_examination() -> None:
    request_examination(connection)
    assert is_called_for() == (True, True)
    assert take_turn(connection)
    assert not take_turn(connection)


def seen_of_examinations() -> list[tuple[str, str]]:
    found = (each for each in examine() if each.check == "examinations")
    return [(each.severity, each.seen) for each in found]


def test_the_doctor_says_when_a_worker_last_ran_it() -> None:
    ((severity, seen),) = seen_of_examinations()
    assert (severity, seen[:20]) == ("info", "No worker has run th")
    run("w1", host="web-1")
    ((severity, seen),) = seen_of_examinations()
    assert severity == "ok"
    assert seen.startswith("The worker w1 on web-1 ran the doctor")
    Examination.objects.update(examined_at=ago(HOUR))
    ((severity, seen),) = seen_of_examinations()
    assert (severity, "w1 on web-1, 60 min ago" in seen) == ("info", True)


@pytest.mark.parametrize("reading", [notices, lambda: list(look_at_work(connection))])
def test_the_findings_cost_a_reading_no_further_statement(
    reading: Callable[[], object], django_assert_num_queries: Any
) -> None:
    from django.test.utils import CaptureQueriesContext

    make_worker()
    with CaptureQueriesContext(connection) as before:
        reading()
    found_by_the_doctor(note())
    with django_assert_num_queries(len(before)):
        reading()
