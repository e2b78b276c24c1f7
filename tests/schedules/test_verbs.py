"""Creating, editing, pausing, running and deleting schedules at run time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue import AfterEnd, Cron, Every, Once, schedules
from taskqueue.core.states import TaskStatus
from taskqueue.engine.pruning import OCCURRENCES
from taskqueue.engine.schedules.reading import conditions
from taskqueue.exceptions import (
    InvalidSchedule,
    ScheduleDoesNotExist,
    ScheduleExists,
    TransitionRefused,
    UnknownTask,
)
from taskqueue.models import Audit, Occurrence, Schedule, Task
from tests.sample.tasks import add, fail, noop
from tests.schedules.steps import (
    HOURLY,
    MINUTE,
    NOON,
    at,
    end,
    hours_of,
    make,
    reasons,
    run_one,
    serve,
    started,
    task_at,
)

pytestmark = pytest.mark.django_db


def test_a_new_schedule_counts_from_now_on_and_is_audited() -> None:
    began_at = timezone.now()
    schedule = schedules.create(
        "nightly", add, Cron("0 2 * * *", tz="Europe/Berlin"), args=[1], kwargs={"b": 2}, by="ada"
    )

    assert schedule.next_at is not None
    assert began_at < schedule.next_at <= timezone.now() + timedelta(days=1, hours=1)
    line = Audit.objects.get()
    assert (line.noun, line.verb, line.subject, line.actor) == (
        "schedule",
        "create",
        "nightly",
        "ada",
    )
    assert line.detail == "At 02:00 (Europe/Berlin)"


def test_a_run_carries_the_arguments_options_and_nominal_time_of_its_schedule() -> None:
    make(
        task=add,
        args=[1],
        kwargs={"b": 2},
        options={"queue_name": "mail", "priority": 5, "timeout": 30, "metadata": {"k": 1}},
    )

    serve(at(1))

    task = Task.objects.get()
    assert (task.args, task.kwargs, task.queue_name, task.priority) == ([1], {"b": 2}, "mail", 5)
    assert task.options == {"timeout": 30, "schedule": "s", "nominal_at": at(1).isoformat()}
    assert task.metadata == {"k": 1}
    assert (task.schedule.name, task.nominal_at) == ("s", at(1))
    occurrence = Occurrence.objects.get()
    assert (occurrence.task_id, occurrence.status) == (task.id, "enqueued")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rule": Cron("61 * * * *")}, "61"),
        ({"rule": Cron("0 0 30 2 *")}, "30"),
        ({"rule": Cron("0 6 * * *", tz="Europe/Berlim")}, "Did you mean 'Europe/Berlin'?"),
        ({"rule": Every(seconds=0.01)}, "second"),
        ({"rule": Once(datetime(2020, 1, 1, tzinfo=UTC))}, "no future time"),
        ({"rule": Every(hours=1, end=datetime(2020, 1, 1, tzinfo=UTC))}, "no future time"),
        ({"rule": "0 6 * * *"}, "needs a rule"),
        ({"name": ""}, "name of a schedule"),
        ({"name": "a\x00b"}, "NUL"),
        ({"name": "x" * 256}, "255"),
        ({"name": 5}, "must be text"),
        ({"args": [1, 2, 3]}, "cannot be called with these arguments"),
        ({"args": "text"}, "list or tuple"),
        ({"args": [{1, 2}]}, "set"),
        ({"args": [float("nan")]}, "must be int, not float"),
        ({"args": [2**70]}, "64 bits"),
        ({"options": {"run_after": 5}}, "run_after is not an option of a schedule"),
        ({"options": {"priority": 101}}, "priority"),
        ({"options": {"sensitive": "a"}}, "sensitive"),
        ({"options": {"queue": "mail"}}, "Did you mean"),
        ({"options": {"on_duplicate": "raise"}}, "not an option of a schedule"),
        ({"options": {"retry_for": ["no.such.Error"]}}, "not an exception class"),
        ({"options": {"unique_key": str}}, "no JSON value"),
        ({"rule": AfterEnd(60, end=datetime(2020, 1, 1, tzinfo=UTC))}, "no future time"),
        ({"options": 5}, "mapping"),
        ({"missed": "newest"}, "missed must be one of"),
        ({"missed": "window"}, "needs missed_window"),
        ({"missed_window": 60}, "needs missed='window'"),
        ({"missed": "window", "missed_window": -1}, "missed_window"),
        ({"overlap": "skp"}, "Did you mean 'skip'?"),
        ({"pause_after_failures": 0}, "1 or more"),
        ({"pause_after_failures": True}, "1 or more"),
        ({"enabled": "yes"}, "True or False"),
        ({"enabled": None}, "True or False"),
        ({"args": None}, "list or tuple"),
        ({"missed": None}, "missed must be one of"),
        ({"overlap": None}, "overlap must be one of"),
    ],
)
def test_an_invalid_schedule_is_refused_and_writes_nothing(
    values: dict[str, Any], message: str
) -> None:
    given = {"name": "s", "task": add, "rule": HOURLY, "args": [1], **values}

    with pytest.raises(InvalidSchedule, match=message):
        schedules.create(given.pop("name"), given.pop("task"), given.pop("rule"), **given)

    assert not Schedule.objects.exists()
    assert not Audit.objects.exists()


def test_another_task_is_not_given_the_arguments_of_the_one_before() -> None:
    schedules.create("s", add, HOURLY, args=[1], kwargs={"b": 2})
    for given in ({}, {"args": [1]}, {"kwargs": {}}):
        with pytest.raises(InvalidSchedule, match=r"Write (args|kwargs) anew"):
            schedules.edit("s", task=noop, **given)
    assert schedules.get("s").task_name == add.name
    assert schedules.edit("s", task=noop, args=[], kwargs={}).task_name == noop.name
    # Nothing can be taken along where there is nothing.
    assert schedules.edit("s", task=fail).task_name == fail.name


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_address_leads_to_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="no URL"):
        schedules.create(name, noop, HOURLY)


def test_a_name_that_is_taken_and_a_task_that_is_not_known_are_refused() -> None:
    make()
    with pytest.raises(ScheduleExists, match="There is a schedule 's' already"):
        schedules.create("s", noop, HOURLY)
    with pytest.raises(UnknownTask, match=r"Did you mean 'tests.sample.tasks.noop'\?"):
        schedules.create("t", "tests.sample.tasks.nop", HOURLY)
    with pytest.raises(ScheduleDoesNotExist, match=r"Did you mean 's'\?"):
        schedules.pause("ss")
    with pytest.raises(ScheduleDoesNotExist):
        schedules.get("a\x00b")


def test_an_edited_rule_counts_from_now_on_and_what_had_come_by_the_old_one_is_served() -> None:
    make(overlap="allow", missed="all", since=timezone.now() - timedelta(hours=2, minutes=30))

    changed = schedules.edit("s", rule=Every(days=400), by="ada")

    assert Task.objects.count() in (2, 3)
    assert changed.next_at is not None
    assert changed.next_at > timezone.now()
    assert Audit.objects.get(noun="schedule", verb="edit").detail == "rule"


def test_editing_nothing_changes_nothing_and_other_changes_leave_the_next_time() -> None:
    schedules.create("s", add, Every(days=400), args=[1])
    before = Schedule.objects.get()

    schedules.edit("s", args=[1])
    assert not Audit.objects.filter(noun="schedule", verb="edit").exists()
    schedules.edit("s", args=[2], missed="window", missed_window=60)
    schedules.edit("s", missed="skip")

    after = Schedule.objects.get()
    assert (after.args, after.missed, after.missed_window) == ([2], "skip", None)
    assert after.next_at == before.next_at
    with pytest.raises(InvalidSchedule, match="Did you mean 'rule'"):
        schedules.edit("s", rul=HOURLY)


def test_a_paused_schedule_records_its_nominal_times_as_skipped_with_who_and_why() -> None:
    make(overlap="allow")
    Schedule.objects.update(paused_at=at(0), paused_by="ada", pause_reason="moving house")

    serve(at(2))

    assert started() == []
    assert reasons() == {1: "Paused by ada: moving house", 2: "Paused by ada: moving house"}


def test_pause_and_resume_are_audited_and_resuming_what_is_not_paused_is_refused() -> None:
    schedules.create("s", noop, HOURLY)
    schedules.pause("s", by="ada", reason="moving")
    assert Schedule.objects.get().pause_reason == "moving"
    schedules.resume("s", by="bob")

    with pytest.raises(TransitionRefused, match="not paused"):
        schedules.resume("s")

    schedule = Schedule.objects.get()
    assert (schedule.paused_at, schedule.paused_by, schedule.pause_reason) == (None, "", "")
    lines = Audit.objects.order_by("id").values_list("verb", "actor", "reason", "before")
    assert list(lines)[1:] == [
        ("pause", "ada", "moving", ""),
        ("resume", "bob", "", "paused"),
    ]


def test_a_schedule_that_is_not_enabled_rests_and_counts_from_when_it_is_enabled_again() -> None:
    make(enabled=False)
    serve(at(5))
    assert not Occurrence.objects.exists()
    assert schedules.preview("s") == []

    enabled_at = timezone.now()
    schedules.edit("s", enabled=True)

    following = Schedule.objects.get().next_at
    assert following is not None
    assert schedules.preview("s", count=2)[0] >= following > enabled_at
    serve(following - timedelta(microseconds=1))
    assert not Occurrence.objects.exists()


def test_a_schedule_pauses_after_failures_in_a_row_and_a_success_resets_their_count() -> None:
    make(task=fail, pause_after_failures=2)
    failed, succeeded, cancelled = TaskStatus.FAILED, TaskStatus.SUCCEEDED, TaskStatus.CANCELLED
    for hour, status in enumerate((failed, succeeded, failed, cancelled), start=1):
        serve(at(hour))
        end(hour, status)
        serve(at(hour + 0.5))
    assert Schedule.objects.get().paused_at is None

    serve(at(5))
    end(5, failed)
    serve(at(6))

    schedule = Schedule.objects.get()
    assert schedule.pause_reason == "2 runs failed in a row."
    assert reasons() == {6: "Paused: 2 runs failed in a row."}
    line = Audit.objects.get(noun="schedule", verb="pause")
    assert (line.actor, line.reason, line.detail) == ("taskqueue", schedule.pause_reason, "")
    assert schedule.paused_itself
    schedules.resume("s")
    assert Schedule.objects.get().failures_in_row == 0


def test_the_last_result_is_kept_when_its_task_is_gone() -> None:
    make()
    serve(at(1))
    end(1)
    serve(at(1.5))
    Task.objects.all().delete()

    schedule = Schedule.objects.get()
    assert (schedule.last_status, schedule.last_return_value) == ("succeeded", {"hours": 1})
    assert hours_of(status="ended", task_status="succeeded") == [1]


def test_a_run_whose_task_was_deleted_before_anybody_looked_has_ended() -> None:
    make()
    serve(at(1))
    Task.objects.all().delete()

    serve(at(2))

    assert started() == [2]
    assert hours_of(status="ended", task_status="") == [1]


def test_the_record_of_a_nominal_time_keeps_it_from_running_twice_whatever_the_cursor_says() -> (
    None
):
    make(overlap="allow")
    serve(at(1))
    Schedule.objects.update(served_until=NOON, next_at=at(1))

    serve(at(1) + MINUTE)

    assert started() == [1]


def test_occurrences_outlive_their_tasks_and_are_pruned_after_their_time() -> None:
    make(overlap="allow")
    serve(at(2))
    Task.objects.all().delete()
    serve(at(2.5))
    Occurrence.objects.update(created_at=timezone.now())
    assert OCCURRENCES.prune(connection) == 0
    assert hours_of() == [1, 2]

    Occurrence.objects.filter(nominal_at=at(1)).update(
        created_at=timezone.now() - OCCURRENCES.kept - MINUTE
    )
    assert OCCURRENCES.prune(connection) == 1

    assert hours_of() == [2]
    serve(at(2.6))
    assert started() == []


def test_run_now_enqueues_a_run_besides_the_rule() -> None:
    schedules.create("s", noop, HOURLY)

    occurrence = schedules.run_now("s", by="ada", reason="month's end")

    task = Task.objects.get()
    assert (occurrence.task_id, occurrence.requested_by) == (task.id, "ada")
    assert task.nominal_at == occurrence.nominal_at
    line = Audit.objects.get(noun="schedule", verb="run_now")
    assert (line.actor, line.reason, line.detail) == ("ada", "month's end", f"task {task.id}")


def test_a_paused_or_disabled_schedule_can_be_run_by_hand() -> None:
    schedules.create("off", noop, HOURLY, enabled=False)
    schedules.create("paused", noop, HOURLY)
    schedules.pause("paused")

    for name in ("off", "paused"):
        assert schedules.run_now(name).status == "enqueued"


def test_a_unique_key_that_another_task_holds_leaves_the_run_out() -> None:
    holder = noop.using(unique_key="one").enqueue()
    make(options={"unique_key": "one"})

    serve(at(1))

    assert reasons() == {1: f"Its unique key is held by task {holder.id}."}
    with pytest.raises(TransitionRefused, match="unique key"):
        schedules.run_now("s")


def test_an_interval_after_the_end_waits_for_the_end() -> None:
    make(AfterEnd(minutes=30))
    serve(at(0))
    assert Schedule.objects.get().next_at is None
    serve(at(3))
    assert started() == [0]

    end(0, when=at(3))
    serve(at(3.1))
    assert Schedule.objects.get().next_at == at(3.5)
    serve(at(3.5))

    assert started() == [0, 3.5]


def test_deleting_takes_the_occurrences_along_and_leaves_the_tasks() -> None:
    make()
    serve(at(1))

    schedules.delete("s", by="ada")

    assert not Schedule.objects.exists()
    assert not Occurrence.objects.exists()
    assert Task.objects.count() == 1
    assert Audit.objects.get(noun="schedule", verb="delete").actor == "ada"
    run_one()


def test_a_declared_schedule_can_be_paused_and_run_but_not_edited_or_deleted() -> None:
    schedules.create("s", noop, HOURLY)
    Schedule.objects.update(source="code")

    with pytest.raises(TransitionRefused, match="declared in code"):
        schedules.edit("s", args=[])
    with pytest.raises(TransitionRefused, match="declared in code"):
        schedules.delete("s")
    schedules.pause("s")
    schedules.run_now("s")
    Schedule.objects.update(removed_at=timezone.now())
    schedules.delete("s")


def test_the_next_times_are_previewed_without_saving_anything() -> None:
    rule = Cron("0 6 * * 1-5", tz="Asia/Shanghai")

    times = schedules.preview_rule(rule, count=2, after=NOON)

    assert times == [datetime(2026, 6, 1, 22, tzinfo=UTC), datetime(2026, 6, 2, 22, tzinfo=UTC)]
    with pytest.raises(InvalidSchedule, match="count"):
        schedules.preview_rule(rule, count=0, after=NOON)


def test_one_schedule_in_trouble_does_not_keep_the_others_from_being_served() -> None:
    make(name="broken")
    make(name="works")
    Schedule.objects.filter(name="broken").update(rule={"kind": "lunar"})

    serve(at(1))

    assert "lunar" in Schedule.objects.get(name="broken").trouble
    assert Schedule.objects.get(name="works").last_nominal_at == at(1)
    assert task_at(1).schedule.name == "works"
    schedules.edit("broken", rule=HOURLY)
    assert Schedule.objects.get(name="broken").trouble == ""


def test_problems_of_a_schedule_are_listed_by_severity() -> None:
    make()
    schedule = Schedule.objects.get(name="s")

    assert conditions(schedule, at(1)) == []
    assert conditions(schedule, at(1) + 2 * MINUTE) == ["overdue"]
    schedule.paused_at = at(0)
    assert conditions(schedule, at(1) + 2 * MINUTE) == ["paused"]
    schedule.trouble = "unreadable"
    assert conditions(schedule, at(1)) == ["trouble", "paused"]
    schedule.removed_at = at(0)
    assert conditions(schedule, at(9)) == ["removed", "trouble", "paused"]
    over = make(Every(hours=1, end=timezone.now() + timedelta(hours=2)), name="ends")
    over.next_at = None
    assert conditions(over, at(1)) == ["over"]


def test_a_run_by_hand_may_have_other_arguments() -> None:
    schedules.create("sums", add, Every(days=365), args=[1], kwargs={"b": 2})
    occurrence = schedules.run_now("sums", args=[5], by="ada")
    made = Task.objects.get(id=occurrence.task_id)
    assert (made.args, made.kwargs) == ([5], {"b": 2})
    assert Schedule.objects.get().args == [1]
    entry = Audit.objects.get(verb="run_now")
    assert entry.detail.endswith("with other arguments")
    assert "5" not in entry.detail.replace(str(made.id), "")


def test_a_run_with_other_arguments_keeps_them_while_it_waits() -> None:
    schedules.create("sums", add, Every(days=365), args=[1, 2], overlap="queue_all")
    first = schedules.run_now("sums")
    waiting = schedules.run_now("sums", kwargs={}, args=[7, 8])
    assert waiting.status == "waiting"
    Task.objects.filter(id=first.task_id).update(status="succeeded", finished_at=timezone.now())
    serve(timezone.now())
    occurrence = Occurrence.objects.get(id=waiting.id)
    assert Task.objects.get(id=occurrence.task_id).args == [7, 8]


def test_other_arguments_that_do_not_fit_are_refused() -> None:
    schedules.create("sums", add, Every(days=365), args=[1, 2])
    for wrong in ({"args": [1, 2, 3]}, {"args": "ab"}, {"kwargs": {"c": 1}}):
        with pytest.raises(InvalidSchedule):
            schedules.run_now("sums", **wrong)
    assert not Task.objects.exists()


def test_a_copy_is_like_the_original_but_for_the_changes() -> None:
    original = schedules.create(
        "nightly", add, Every(hours=9), args=[1], kwargs={"b": 2}, options={"priority": 3},
        missed="window", missed_window=90, jitter=60, max_runs=4, enabled=False,
    )  # fmt: skip
    schedules.pause("nightly")
    copy = schedules.copy("nightly", "weekly", rule=Every(hours=8), kwargs={"b": 5}, by="ada")
    same = ("task_name", "args", "options", "missed", "missed_window", "jitter", "max_runs",
            "is_enabled")  # fmt: skip
    assert [getattr(copy, name) for name in same] == [getattr(original, name) for name in same]
    assert (copy.kwargs, copy.rule, copy.paused_at) == ({"b": 5}, Every(hours=8).as_json(), None)
    assert copy.request["kwargs"] == '{"b":5}'
    assert list(Audit.objects.order_by("-id").values_list("verb", "subject", "actor")[:1]) == [
        ("create", "weekly", "ada")
    ]


def test_a_copy_is_refused_as_a_new_schedule_is() -> None:
    schedules.create("nightly", add, Every(hours=9), args=[1], kwargs={"b": 2})
    with pytest.raises(InvalidSchedule, match="already"):
        schedules.copy("nightly", "nightly")
    with pytest.raises(ScheduleDoesNotExist):
        schedules.copy("none", "other")
    with pytest.raises(InvalidSchedule, match="Write args anew"):
        schedules.copy("nightly", "other", task=noop)
    with pytest.raises(InvalidSchedule, match="Did you mean"):
        schedules.copy("nightly", "other", rules=Every(hours=1))
    assert Schedule.objects.count() == 1
