"""Schedules that the code declares: found by the system check, synchronised with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import Error, Warning
from django.db import connection
from django.utils import timezone

from taskqueue import Cron, DailyWindow, Every, Once, Scheduled, schedules, task
from taskqueue.core.states import Missed, Overlap
from taskqueue.declarations.checks import check_definitions, definitions_unread
from taskqueue.declarations.definition import registry
from taskqueue.declarations.definition_checks import check_schedules
from taskqueue.definitions import Definition
from taskqueue.engine.schedules import syncing
from taskqueue.exceptions import InvalidSchedule, InvalidTask
from taskqueue.models import Schedule, Worker
from tests.schedules.steps import HOURLY, at, make, serve, started

Declare = Callable[..., Definition[Any, Any]]


def body(number: int = 0) -> int:
    """The body that is declared with schedules here."""
    return number


@pytest.fixture
def declare() -> Iterator[Declare]:
    """Declare `body` with these options, until the test ends."""
    names: list[str] = []

    def declare(schedule: Any, *, name: str = "declared", **options: Any) -> Definition[Any, Any]:
        registry._definitions.pop(name, None)
        names.append(name)
        definition: Definition[Any, Any] = task(name=name, schedule=schedule, **options)(body)
        return definition

    yield declare
    for name in names:
        registry._definitions.pop(name, None)


def test_a_rule_alone_is_a_schedule_named_as_its_task(declare: Declare) -> None:
    definition = declare(HOURLY)

    assert definition.options.schedule == (Scheduled(HOURLY),)
    assert check_schedules() == []


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Cron("0 6 * *"), "0 6 * *"),
        (Cron("0 25 * * *"), "25"),
        (Cron("0 0 31 2 *"), "31"),
        (Cron("0 6 * * *", tz="Asia/Shangai"), "Did you mean 'Asia/Shanghai'?"),
        (Every(seconds=0.01), "second"),
        (DailyWindow("25:00", "26:00", every=60), "25:00"),
        (Once("tomorrow"), "tomorrow"),  # type: ignore[arg-type]
        ("0 6 * * *", "needs a rule such as Cron"),
        (Scheduled(HOURLY, args=["a", "b"]), "cannot be called with these arguments"),
        (Scheduled(HOURLY, overlap="never"), "overlap must be one of"),
        (Scheduled(HOURLY, options={"prioritty": 1}), "Did you mean 'priority'?"),
    ],
)
def test_an_invalid_declared_schedule_fails_the_system_check(
    declare: Declare, schedule: Any, message: str
) -> None:
    declare(schedule)

    (error,) = check_schedules()

    assert isinstance(error, Error)
    assert error.id == "taskqueue.E004"
    assert error.msg.startswith("The schedule 'declared' cannot work: ")
    assert message in error.msg


def test_two_schedules_of_one_name_are_an_error_of_the_system_check(declare: Declare) -> None:
    declare(Scheduled(HOURLY, name="same"), name="one")
    declare(Scheduled(HOURLY, name="same"), name="two")

    (error,) = check_schedules()

    assert error.id == "taskqueue.E005"
    assert error.msg == "Two schedules are named 'same': of one and two."


def test_a_jitter_beyond_the_shortest_interval_is_a_warning_of_the_system_check(
    declare: Declare,
) -> None:
    rule = Cron("0 8,9 * * *")
    declare(Scheduled(rule, jitter=5400))

    (warning,) = check_schedules()

    assert isinstance(warning, Warning)
    assert warning.id == "taskqueue.W005"
    assert "'declared' is longer than the shortest interval of its rule, 1:00:00" in warning.msg
    assert warning.hint == "Shorten the jitter, or choose missed='all' with overlap='queue_all'."
    declare(Scheduled(rule, jitter=3600))
    assert check_schedules() == []


@pytest.mark.parametrize("overlap", [each.value for each in Overlap])
@pytest.mark.parametrize("missed", [each.value for each in Missed])
@pytest.mark.parametrize("rule", [Cron("0 8,9 * * *"), HOURLY], ids=str)
def test_the_checks_report_a_long_jitter_unless_all_times_run(
    rule: Any, missed: str, overlap: str, declare: Declare
) -> None:
    window = 3600 if missed == "window" else None
    declare(Scheduled(rule, jitter=5400, missed=missed, missed_window=window, overlap=overlap))
    all_run = missed in ("all", "window") and overlap in ("queue_all", "allow")
    is_refused = rule == HOURLY and missed != "all"
    told = [] if all_run else ["taskqueue.E004" if is_refused else "taskqueue.W005"]
    assert [each.id for each in check_schedules()] == told


def test_the_check_warns_of_definitions_that_cannot_be_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> list[Any]:
        raise ImportError("no module named shop")

    monkeypatch.setattr(registry, "all", fail)

    (warning,) = check_schedules()
    assert isinstance(warning, Warning)
    assert warning.id == "taskqueue.W002"
    assert check_definitions() == [warning]
    with definitions_unread():
        assert check_definitions() == []


def test_a_schedule_stands_in_the_decorator_not_in_using(declare: Declare) -> None:
    with pytest.raises(InvalidTask, match="schedule belongs to the definition"):
        declare(None).using(schedule=HOURLY)


@pytest.mark.django_db
def test_synchronising_twice_changes_nothing_the_second_time(declare: Declare) -> None:
    declare([Every(hours=1), Scheduled(Every(hours=2), args=[2]), Scheduled(Every(hours=3))])

    first, second = schedules.sync(), schedules.sync()

    assert first.created == ["declared", "declared:2", "declared:3"]
    assert (second.created, second.changed, second.removed) == ([], [], [])


@pytest.mark.django_db
def test_a_changed_declaration_changes_the_row_and_a_changed_option_its_next_tasks(
    declare: Declare,
) -> None:
    declare(Scheduled(HOURLY, args=[1], overlap="skip"))
    schedules.sync()
    before = Schedule.objects.get()

    declare(Scheduled(HOURLY, args=[2], overlap="allow"), priority=7)
    changed = schedules.sync().changed

    after = Schedule.objects.get()
    assert changed == ["declared"]
    assert (after.args, after.overlap) == ([2], "allow")
    assert after.request["spec"]["priority"] == 7
    assert after.next_at == before.next_at


@pytest.mark.django_db
def test_a_schedule_created_at_run_time_is_not_taken_over_by_a_declaration(
    declare: Declare,
) -> None:
    schedules.create("declared", "tests.sample.tasks.noop", HOURLY)
    declare(HOURLY)

    synced = schedules.sync()

    assert "created at run time" in synced.refused[0]
    assert Schedule.objects.get().source == "row"


@pytest.mark.django_db
def test_schedules_made_at_run_time_follow_the_options_of_their_task(declare: Declare) -> None:
    definition = declare(None, max_attempts=1)
    make(task=definition, overlap="allow")
    declare(None, max_attempts=5)

    schedules.sync()

    assert Schedule.objects.get().request["spec"]["max_attempts"] == 5


@pytest.mark.django_db
def test_a_schedule_removed_from_code_rests_and_returns_without_catching_up(
    declare: Declare,
) -> None:
    declare(HOURLY)
    schedules.sync()
    declare(None)

    assert schedules.sync().removed == ["declared"]
    serve(at(24 * 400))
    assert started() == []
    declare(HOURLY)
    assert schedules.sync().changed == ["declared"]

    schedule = Schedule.objects.get()
    assert schedule.removed_at is None
    assert schedules.preview("declared", count=1) == [schedule.next_at]


def raise_key(number: int = 0) -> str:
    raise KeyError("a secret")


@pytest.mark.django_db
def test_a_unique_key_that_raises_spoils_its_own_schedule_alone(declare: Declare) -> None:
    declare(Scheduled(HOURLY, name="works"), name="one")
    declare(Scheduled(HOURLY, name="bad"), name="two", unique_key=raise_key)
    declare(Scheduled(HOURLY, name=["x"]), name="three")  # type: ignore[arg-type]

    errors = check_schedules()
    synced = schedules.sync(worker="w")

    assert [error.id for error in errors] == ["taskqueue.E004"] * 2
    assert not any("a secret" in error.msg for error in errors)
    assert synced.created == ["works"]
    assert len(synced.refused) == 2
    assert "unique_key raised KeyError" in "".join(synced.refused)
    with pytest.raises(InvalidSchedule, match="unique_key raised KeyError"):
        schedules.create("other", registry.get("two"), HOURLY)


@pytest.mark.django_db
def test_a_schedule_made_at_run_time_whose_task_changed_is_in_trouble_until_it_fits_again(
    declare: Declare,
) -> None:
    definition = declare(None)
    make(task=definition, name="later")
    declare(None, unique_key=raise_key)
    make(name="fine", overlap="allow")

    schedules.sync()
    assert "unique_key raised KeyError" in Schedule.objects.get(name="later").trouble
    serve(at(1))
    assert "unique_key raised KeyError" in Schedule.objects.get(name="later").trouble

    declare(None)
    schedules.sync()
    assert Schedule.objects.get(name="later").trouble == ""


@pytest.mark.django_db
def test_a_refresh_does_not_undo_an_edit_that_came_between(
    declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = declare(None)
    make(task=definition, args=[1])
    declare(None, max_attempts=5)
    real, is_edited = syncing.snapshot_of, []

    def edit_first(*given: Any) -> dict[str, Any]:
        snapshot = real(*given)
        if not is_edited:
            is_edited.append(True)
            schedules.edit("s", args=[2])
        return snapshot

    monkeypatch.setattr(syncing, "snapshot_of", edit_first)
    schedules.sync()

    schedule = Schedule.objects.get()
    assert (schedule.args, schedule.request["args"]) == ([2], "[2]")


@pytest.mark.django_db
def test_a_schedule_declared_after_the_workers_started_does_not_rest(declare: Declare) -> None:
    now = timezone.now()
    Worker.objects.create(
        name="old", host="h", pid=1, started_at=now, seen_at=now + timedelta(hours=1), schedules=[]
    )
    declare(HOURLY)
    assert schedules.sync().created == ["declared"]

    assert syncing.rest_undeclared(connection) == []

    Worker.objects.update(started_at=now + timedelta(minutes=1))
    assert syncing.rest_undeclared(connection) == ["declared"]
