"""`manage.py taskqueue schedules …`: what it shows of schedules, their times and their runs."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from taskqueue import schedules
from taskqueue.core.states import Missed, TaskStatus
from taskqueue.declarations.redaction import REDACTED
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.rules import AfterEnd, Cron
from tests.management.schedule_steps import ADD, NOOP, create, run, run_json
from tests.sample.tasks import log_in
from tests.schedules.steps import HOURLY, NOON, at, end, make, serve, task_at

pytestmark = pytest.mark.django_db
SHANGHAI = ("--cron", "0 6 * * 1-5", "--tz", "Asia/Shanghai", "--start", "2100-06-01T00:00+00:00")


# List


def test_without_schedules_it_is_said_how_to_make_one() -> None:
    printed = run()
    assert "are written when a worker starts, or by `schedules sync`" in printed
    assert "`schedules create --help`" in printed
    assert run_json("list") == []


def test_the_table_tells_task_rule_next_time_last_run_and_state() -> None:
    make()
    serve(at(1))
    end(1, TaskStatus.FAILED)
    assert run() == (
        "name  state    next (UTC)           last run (UTC)\n"
        "s     overdue  2026-06-01 14:00:00  2026-06-01 13:00:00  failed\n"
        f"  {NOOP}: Every hour\n"
    )


def test_a_run_that_has_not_ended_is_shown_as_its_task_stands() -> None:
    make()
    serve(at(1))
    assert run_json()[0]["last_task_status"] == "ready"


def test_a_run_whose_task_was_pruned_is_shown_as_it_ended() -> None:
    make()
    serve(at(1))
    end(1)
    serve(at(1.5))
    task_at(1).delete()
    assert run_json()[0]["last_task_status"] == "succeeded"


def test_scripts_can_read_the_result_of_the_last_run() -> None:
    make()
    serve(at(1))
    end(1)
    serve(at(1.5))
    Schedule.objects.update(last_return_value=7)
    for shown in (run_json("list")[0], run_json("show", "s")):
        assert (shown["last_return_value"], shown["last_error"]) == (7, "")
    Schedule.objects.update(last_status="failed", last_error="Broken.")
    for shown in (run_json("list")[0], run_json("show", "s")):
        assert (shown["last_return_value"], shown["last_error"]) == (None, "Broken.")


def test_why_a_schedule_rests_stands_below_it() -> None:
    create("paused")
    create("disabled", "--disabled")
    create("troubled")
    create("removed")
    run("pause", "paused", "--by", "anna", "--reason", "the press\nis down")
    Schedule.objects.filter(name="troubled").update(trouble="Unknown rule.")
    Schedule.objects.filter(name="removed").update(removed_at=NOON)
    output = run("list")
    assert f"  {NOOP}: Every hour\n  Paused by anna: the press is down\n" in output
    assert "\n  The schedule is not enabled.\n" in output
    assert "\n  Unknown rule.\n" in output
    assert "\n  No code declares the schedule any more.\n" in output
    states = {line["name"]: line["state"] for line in run_json()}
    assert states.pop("troubled") == "trouble"
    assert states == {name: name for name in ("paused", "disabled", "removed")}


def test_one_that_is_never_due_again_is_over_and_one_that_runs_is_not() -> None:
    make(AfterEnd(hours=1))
    Schedule.objects.update(rule=AfterEnd(hours=1, end=at(1)).as_json())
    serve(NOON)
    assert (run_json()[0]["state"], run_json()[0]["next_at"]) == ("active", None)
    end(0, when=at(0.5))
    serve(at(2))
    assert run_json()[0]["state"] == "over"


def test_the_format_may_stand_before_the_action() -> None:
    create()
    assert json.loads(run("--format", "json", "list"))[0]["name"] == "s"


# Show


def test_the_sheet_tells_the_next_times_in_utc_and_in_the_zone_of_the_rule() -> None:
    create(when=SHANGHAI)
    output = run("show", "s")
    assert "At 06:00, Monday through Friday (Asia/Shanghai)" in output
    assert "  UTC                  Asia/Shanghai\n" in output
    assert "  2100-06-01 22:00:00  Wed 2100-06-02 06:00:00 +0800\n" in output
    times = run_json("show", "s")["next_times"]
    assert len(times) == 5
    assert times[0] == "2100-06-01T22:00:00Z"
    previewed = run_json("preview", "s")["times"]
    assert previewed[0] == {"utc": "2100-06-01T22:00:00Z", "local": "2100-06-02T06:00:00+08:00"}


def test_a_paused_schedule_has_no_next_time() -> None:
    create()
    run("pause", "s")
    assert run_json()[0]["next_at"] is None
    sheet = run_json("show", "s")
    assert (sheet["next_at"], sheet["next_times"]) == (None, [])
    run("resume", "s")
    assert run_json()[0]["next_at"]
    assert len(run_json("show", "s")["next_times"]) == 5


def test_the_sheet_tells_what_became_of_the_last_runs_and_what_was_done_by_hand() -> None:
    make(missed=Missed.SKIP, by="anna", reason="for the books")
    serve(at(12.5))
    shown = run_json("show", "s")
    assert [line["status"] for line in shown["last_runs"]] == ["skipped"] * 12
    assert shown["audit"][0]["verb"] == "create"
    output = run("show", "s")
    assert "2026-06-02 00:00:00  skipped  Missed: nobody served the schedule in time.\n" in output
    assert "create  anna  Every hour; for the books\n" in output


def test_secret_arguments_are_not_shown() -> None:
    create("s", "--args", '["anna"]', "--kwargs", '{"password": "hunter2"}', task=log_in.name)
    for action in (["show", "s"], ["list"], ["edit", "s", "--overlap", "allow"]):
        for form in ("text", "json"):
            assert "hunter2" not in run(*action, "--format", form)
    assert run_json("show", "s")["kwargs"] == {"password": REDACTED}


def test_arguments_of_a_task_that_is_not_known_here_are_hidden() -> None:
    create("s", "--args", "[471147114711]", task=ADD)
    Schedule.objects.update(task_name="gone.task")
    for action in (["show", "s"], ["list", "--format", "json"]):
        assert "471147114711" not in run(*action)
    assert "hidden: no definition of this name is known here" in run("show", "s")
    assert (run_json()[0]["args"], run_json()[0]["kwargs"]) == (None, None)


def test_a_rule_that_cannot_be_read_is_shown_as_such() -> None:
    create()
    Schedule.objects.update(rule={"kind": "lunar"})
    shown = run_json("show", "s")
    assert (shown["rule"], shown["next_times"]) == ({"kind": "lunar"}, [])
    assert run_json("list")[0]["rule"] == {"kind": "lunar"}
    assert '{"kind": "lunar"}' in run("show", "s")
    assert shown["rule_text"].startswith("A rule that cannot be read: There is no kind of rule")
    assert "A rule that cannot be read" in run("show", "s")
    assert "A rule that cannot be read" in run("list")


# Preview


def test_a_rule_is_previewed_before_it_is_saved() -> None:
    output = run("preview", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--count", "2",
                 "--start", "2100-03-27T12:00+00:00")  # fmt: skip
    assert output == (
        "At 02:30 (Europe/Berlin), from 2100-03-27 12:00:00 UTC\n"
        "UTC                  Europe/Berlin\n"
        "2100-03-28 01:00:00  Sun 2100-03-28 03:00:00 +0200\n"
        "2100-03-29 00:30:00  Mon 2100-03-29 02:30:00 +0200\n"
    )
    assert not Schedule.objects.exists()


def test_the_times_of_a_schedule_are_previewed() -> None:
    create(when=SHANGHAI)
    shown = run_json("preview", "s", "--count", "7")
    assert len(shown["times"]) == 7
    assert shown["rule"]["expression"] == "0 6 * * 1-5"


def test_where_nothing_is_to_come_the_preview_says_why() -> None:
    create("resting", "--disabled")
    assert run("preview", "resting").endswith("It is disabled: nothing is due.\n")
    make(AfterEnd(hours=1))
    serve(NOON)
    assert run("preview", "s").endswith("known when the current run has ended.\n")
    past = run("preview", "--once", "2001-01-01T00:00+00:00")
    assert past.endswith("It has no future time.\n")


# History


def test_the_history_tells_what_became_of_each_time_and_why() -> None:
    make(Cron("0 * * * *"))
    serve(at(1))
    end(1)
    serve(at(3))
    lines = run("history", "s").splitlines()
    assert lines[0] == "nominal time (UTC)   status     task or workflow, or why there is none"
    assert lines[1] == f"2026-06-01 15:00:00  ready      {task_at(3).id}"
    assert lines[2] == "2026-06-01 14:00:00  skipped    Missed; the latest one makes up for it."
    assert lines[3] == (
        f"2026-06-01 13:00:00  succeeded  {task_at(1).id} ended 2026-06-01 13:00:00"
    )


def test_the_history_is_as_long_as_asked_and_may_be_of_the_skipped_alone() -> None:
    make(missed=Missed.SKIP)
    serve(at(1))
    serve(at(3.5))
    assert len(run_json("history", "s")) == 3
    assert len(run_json("history", "s", "--count", "2")) == 2
    skipped = run_json("history", "s", "--skipped")
    assert [line["status"] for line in skipped] == ["skipped", "skipped"]


def test_many_that_were_skipped_together_are_one_line() -> None:
    make(missed=Missed.SKIP)
    serve(at(2000.5))
    line = run("history", "s").splitlines()[-1]
    assert "Missed: nobody served the schedule in time. 500 times until " in line


def test_a_run_by_hand_says_whose() -> None:
    create()
    run("run", "s", "--by", "anna")
    assert run("history", "s").endswith(" (by hand: anna)\n")


def test_the_history_writes_all_moments_in_one_form() -> None:
    make(Cron("0 * * * *"), overlap="allow")
    serve(at(1))
    run("run", "s", "--by", "anna")  # At a moment that has microseconds.
    _, *lines = run("history", "s").splitlines()
    assert [line for line in lines if "anna" in line]
    assert {len(line.split("  ")[0]) for line in lines} == {len("2026-06-01 13:00:00")}


def test_a_schedule_without_a_history_says_so() -> None:
    make(since=NOON + timedelta(days=1))
    assert run("history", "s") == "s  nothing yet\n"


def test_a_task_tells_which_schedule_it_is_a_run_of() -> None:
    schedules.create("reports", NOOP, HOURLY)
    occurrence = schedules.run_now("reports")
    out = StringIO()

    call_command("taskqueue", "show", str(occurrence.task_id), "--format", "json", stdout=out)

    shown = json.loads(out.getvalue())
    assert shown["schedule"] == "reports"
    assert shown["nominal_at"] == json_form(occurrence.nominal_at)
