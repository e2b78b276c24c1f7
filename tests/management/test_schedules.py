"""`manage.py taskqueue schedules …`: what it makes, changes and does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taskqueue import rules, workflow
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.models import Audit, Occurrence, Schedule, Task, Workflow
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule
from taskqueue.workflows import Builder
from tests.management.schedule_steps import ADD, NOOP, create, refused, row, run, run_json
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db
MORNING = datetime(2100, 12, 1, 9, tzinfo=UTC)
HALF_HOURLY = DailyWindow("09:00", "17:30", every=1800, days="mon-fri", tz="Europe/Berlin")


def rule_of(name: str = "s") -> Rule:
    return rules.from_json(row(name).rule)


@contextmanager
def declared(*schedules: Scheduled) -> Iterator[None]:
    """As if `noop` were declared with these schedules."""
    options = noop.options
    noop.options = replace(options, schedule=schedules)
    try:
        yield
    finally:
        noop.options = options


# Create


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["--cron", "0 6 * * 1-5", "--tz", "Asia/Shanghai"], Cron("0 6 * * 1-5", "Asia/Shanghai")),
        (["--cron", "*/5 * * * *"], Cron("*/5 * * * *")),
        (["--every", "10m"], Every(minutes=10)),
        (
            ["--every", "1d", "--start", "2100-12-01T09:00+00:00", "--end", "2101-01-01T00:00Z"],
            Every(days=1, start=MORNING, end=datetime(2101, 1, 1, tzinfo=UTC)),
        ),
        (["--after-end", "90s"], AfterEnd(seconds=90)),
        (
            [
                *["--daily", "09:00-17:30", "--step", "30m", "--days", "mon-fri"],
                *["--tz", "Europe/Berlin"],
            ],
            HALF_HOURLY,
        ),
        (["--once", "2100-12-01T09:00+00:00"], Once(MORNING)),
    ],
)
def test_every_kind_of_rule_can_be_typed(flags: list[str], rule: Rule) -> None:
    create(when=tuple(flags))
    assert rule_of() == rule


def test_a_schedule_is_created_as_typed() -> None:
    output = create_fully()
    assert output.startswith("sums  created: Every hour; next at ")
    schedule = row("sums")
    assert (schedule.task_name, schedule.args, schedule.kwargs) == (ADD, [1], {"b": 2})
    assert schedule.options == {"queue_name": "sums", "priority": -3, "max_attempts": 5}
    assert (schedule.missed, schedule.missed_window) == ("window", timedelta(hours=2))
    assert (schedule.overlap, schedule.pause_after_failures) == ("queue_one", 3)
    assert schedule.is_enabled
    line = Audit.objects.get()
    assert (line.noun, line.verb, line.actor) == ("schedule", "create", "anna")
    assert line.reason == "for the books"


def create_fully() -> str:
    return run(
        *["create", "sums", "--task", ADD, "--every", "1h", "--args", "[1]"],
        *["--kwargs", '{"b": 2}', "--queue", "sums", "--priority", "-3"],
        *["--option", "max_attempts=5", "--missed", "window", "--missed-window", "2h"],
        *["--overlap", "queue_one", "--pause-after-failures", "3"],
        *["--by", "anna", "--reason", "for the books"],
    )


def test_one_that_is_created_disabled_is_not_said_to_be_due() -> None:
    assert run("create", "s", "--task", NOOP, "--every", "1h", "--disabled") == (
        "s  created: Every hour\n"
    )
    assert not row().is_enabled


# Edit


def test_an_edit_changes_what_is_given_and_nothing_else() -> None:
    create_fully()
    before = row("sums")
    assert run("edit", "sums", "--overlap", "allow", "--by", "ben").startswith("sums  changed: ")
    after = row("sums")
    assert after.overlap == "allow"
    for name in ("task_name", "rule", "args", "kwargs", "options", "missed", "missed_window"):
        assert getattr(after, name) == getattr(before, name)
    assert Audit.objects.get(noun="schedule", verb="edit").actor == "ben"


def test_an_edit_of_nothing_new_says_so() -> None:
    create()
    assert run("edit", "s", "--every", "60m").startswith("s  nothing to change: Every hour")
    assert not Audit.objects.filter(noun="schedule", verb="edit").exists()


def test_refinements_of_a_rule_can_be_changed_alone() -> None:
    create(when=("--cron", "0 6 * * *", "--tz", "Asia/Shanghai"))
    run("edit", "s", "--tz", "Europe/Berlin")
    assert rule_of() == Cron("0 6 * * *", "Europe/Berlin")
    run("edit", "s", "--cron", "0 7 * * *", "--end", "2100-12-01T09:00+00:00")
    assert rule_of() == Cron("0 7 * * *", "Europe/Berlin", end=MORNING)
    run("edit", "s", "--end", "none")
    assert rule_of() == Cron("0 7 * * *", "Europe/Berlin")
    run("edit", "s", "--once", "2100-12-01T09:00+00:00")
    assert rule_of() == Once(MORNING)


def test_a_rule_of_another_kind_keeps_what_it_can() -> None:
    create(when=("--cron", "0 6 * * *", "--tz", "Europe/Berlin"))
    run("edit", "s", "--daily", "09:00-17:30", "--step", "30m", "--days", "mon-fri")
    assert rule_of() == HALF_HOURLY
    run("edit", "s", "--daily", "10:00-12:00")
    assert rule_of() == DailyWindow("10:00", "12:00", every=1800, days="mon-fri", tz=HALF_HOURLY.tz)
    run("edit", "s", "--every", "10m")
    assert rule_of() == Every(minutes=10)


def test_options_are_set_and_unset_one_by_one() -> None:
    create_fully()
    run("edit", "sums", "--option", "max_attempts=7", "--unset-option", "priority")
    assert row("sums").options == {"queue_name": "sums", "max_attempts": 7}
    run("edit", "sums", "--queue", "mail")
    assert row("sums").options == {"queue_name": "mail", "max_attempts": 7}


def test_values_of_a_schedule_can_be_reset() -> None:
    create_fully()
    run("edit", "sums", "--pause-after-failures", "none", "--missed", "skip", "--args", "[5]")
    schedule = row("sums")
    assert (schedule.pause_after_failures, schedule.args) == (None, [5])
    assert (schedule.missed, schedule.missed_window) == ("skip", None)


def test_a_schedule_is_disabled_and_enabled() -> None:
    create()
    run("edit", "s", "--disable")
    assert not row().is_enabled
    run("edit", "s", "--enable")
    assert row().is_enabled


# Pause, resume, run, delete


def test_schedules_are_paused_and_resumed_with_who_and_why() -> None:
    create("a")
    create("b")
    output = run("pause", "a", "b", "--by", "anna", "--reason", "night")
    assert output.splitlines() == [
        "Schedule a paused; running tasks continue.",
        "Schedule b paused; running tasks continue.",
    ]
    assert (row("a").paused_by, row("b").pause_reason) == ("anna", "night")
    assert run_json("resume", "a") == {
        "action": "resume",
        "schedules": [{"name": "a", "done": True}],
    }
    assert row("a").paused_at is None


def test_a_schedule_is_run_now() -> None:
    create()
    told = run_json("run", "s", "--by", "anna")["schedules"][0]
    task, occurrence = Task.objects.get(), Occurrence.objects.get()
    assert (told["task_id"], told["status"]) == (str(task.id), "enqueued")
    assert occurrence.requested_by == "anna"


def test_a_run_that_queues_up_is_said_to_wait() -> None:
    create("s", "--overlap", "queue_one")
    assert run("run", "s") == f"s  enqueued: task {Task.objects.get().id}\n"
    assert run("run", "s") == "s  waits until the run before it ends\n"


def test_each_of_several_is_tried_and_refusals_are_reported() -> None:
    create("a")
    code, said, printed = refused("delete", "a", "b")
    assert (code, said) == (1, "1 was refused.")
    assert printed == "Schedule a deleted.\nb  There is no schedule 'b'.\n"
    assert not Schedule.objects.exists()


# Sync


def test_sync_writes_declared_schedules_to_the_database() -> None:
    assert run("sync") == "nothing to change\n"
    with declared(Scheduled(Every(hours=1), name="hourly")):
        assert run("sync") == "created  hourly\n"
        assert run("sync") == "nothing to change\n"
    with declared(Scheduled(Every(hours=2), name="hourly")):
        assert run_json("sync") == {
            "created": [], "changed": ["hourly"], "removed": [], "refused": [],
        }  # fmt: skip
    assert run("sync") == "removed  hourly\n"
    assert (state_of("hourly"), row("hourly").removed_at is None) == ("removed", False)


def test_a_declaration_that_cannot_work_is_reported_and_the_others_are_made() -> None:
    bad, good = Scheduled(Cron("61 * * * *"), name="bad"), Scheduled(Every(hours=1), name="good")
    with declared(bad, good):
        code, said, printed = refused("sync")
    assert (code, said) == (1, "1 was refused.")
    assert printed.startswith("created  good\nrefused  bad: Cron: '61 * * * *' is not a cron")
    assert Schedule.objects.get().name == "good"


def state_of(name: str) -> Any:
    return run_json("show", name)["state"]


# Workflows


@workflow(name="managed.flow")
def flow(wf: Builder, number: int) -> None:
    """Two steps."""
    wf.step(add.s(wf.step(add.s(number, 1), name="first"), 1), name="second")


def test_a_schedule_of_a_workflow_is_created_run_and_shown() -> None:
    made = run_json(
        "create", "flow", "--task", flow.name, "--kwargs", '{"number": 5}', "--every", "1d"
    )
    assert (made["task"], made["is_workflow"], made["kwargs"]) == (flow.name, True, {"number": 5})
    said = run("run", "flow")
    workflow_id = Workflow.objects.get().id
    assert said == f"flow  enqueued: workflow {workflow_id}\n"
    assert f"running  workflow {workflow_id}" in run("history", "flow")
    (listed,) = run_json("history", "flow")
    assert (listed["workflow_id"], listed["task_id"]) == (str(workflow_id), None)
    Occurrence.objects.update(status="ended")
    run("run", "flow", "--kwargs", '{"number": 8}')
    assert Workflow.objects.exclude(id=workflow_id).get().kwargs == {"number": 8}
    assert "cannot be called" in refused("run", "flow", "--kwargs", '{"no": 8}')[1]
    run("edit", "flow", "--option", "deadline=2h")
    assert row("flow").options == {"deadline": 7200.0}
    assert str(workflow_id) in run("show", "flow")


def test_a_copy_has_what_the_flags_do_not_say() -> None:
    create("s", "--overlap", "queue_one", "--option", "max_attempts=3")
    told = run("copy", "s", "t", "--every", "1d", "--queue", "mail", "--reason", "for mail")
    assert told.startswith("t  created as a copy of s: ")
    copied = row("t")
    assert rule_of("t") == Every(days=1)
    assert (copied.overlap, copied.options) == (
        "queue_one", {"max_attempts": 3, "queue_name": "mail"}
    )  # fmt: skip
    assert "already" in refused("copy", "s", "t")[1]
