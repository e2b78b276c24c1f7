"""Several ids, or names, of one command: each is tried, and of each is told how it went."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from taskqueue.engine.control.verb import TaskVerb
from taskqueue.models import Task
from tests.engine.steps import task_of
from tests.management.schedule_steps import create
from tests.management.test_taskqueue import refused, run
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def tried(*arguments: object) -> tuple[int, str, str]:
    """The exit code, the error and what was printed, of a command that is refused."""
    out = StringIO()
    with pytest.raises(CommandError) as refusal:
        call_command("taskqueue", *map(str, arguments), stdout=out, no_color=True)
    return refusal.value.returncode, str(refusal.value), out.getvalue()


def three() -> list[Any]:
    """Of which only the second cannot be pinged every 50 seconds."""
    return [noop.using(lease_duration=seconds).enqueue() for seconds in (600, 5, 600)]


def test_a_change_refused_by_one_task_is_applied_to_the_others() -> None:
    one, odd, other = three()
    code, said, told = tried("update", one.id, odd.id, other.id, "--set", "ping_interval=50s")
    assert (code, said) == (1, "1 was refused.")
    first, second, third = told.splitlines()
    assert (first, third) == (f"{one.id}  update: done", f"{other.id}  update: done")
    assert second.startswith(f"{odd.id}  update: ")
    assert "ping_interval" in second
    assert [task_of(each).ping_interval is None for each in (one, odd, other)] == [
        False, True, False,
    ]  # fmt: skip


def test_one_alone_that_it_does_not_fit_is_refused_too() -> None:
    _, odd, _ = three()
    code, said = refused("update", odd.id, "--set", "ping_interval=50s")
    assert (code, "ping_interval" in said) == (1, True)


@pytest.mark.parametrize("change", ["priority=1000", "ping_interval=-1", "bogus=1"])
def test_a_change_that_no_task_can_take_is_refused_before_any_is_tried(change: str) -> None:
    one, odd, other = three()
    code, _, told = tried("update", one.id, odd.id, other.id, "--set", "timeout=9", "--set", change)
    assert (code, told) == (2, "")
    assert not any("timeout" in task.options for task in Task.objects.all())


def test_a_search_in_place_of_ids_is_refused_with_the_flag_that_takes_it() -> None:
    said = "To choose tasks by a search, write --query 'status:failed class:E'."
    for flags in ((), ("--dry-run",), ("--yes",)):
        assert tried("retry", "status:failed class:E", *flags)[:2] == (2, said)


def test_where_all_are_refused_each_says_why() -> None:
    missing = uuid4()
    assert tried("cancel", "xx", missing) == (
        1,
        "2 were refused.",
        f"xx  cancel: 'xx' is not the id of a task: write a UUID.\n"
        f"{missing}  cancel: There is no task {missing}."
        "\n",
    )
    assert tried("schedules", "pause", "no1", "no2")[2].count("There is no schedule") == 2


def test_that_the_database_is_away_is_said_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(verb: TaskVerb, task_id: UUID, **_: object) -> str:
        raise OperationalError("the server is away")

    monkeypatch.setattr(TaskVerb, "act", away)
    code, _, told = tried("cancel", uuid4(), uuid4())
    assert (code, told.count("The database failed: the server is away")) == (1, 2)


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_interrupt_loses_nothing_of_what_was_done(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = noop.enqueue(), noop.enqueue()
    act = TaskVerb.act

    def interrupted(verb: TaskVerb, task_id: UUID, **who: Any) -> Any:
        if str(task_id) == str(other.id):
            raise KeyboardInterrupt
        return act(verb, task_id, **who)

    monkeypatch.setattr(TaskVerb, "act", interrupted)
    out = StringIO()
    with pytest.raises(KeyboardInterrupt):
        call_command("taskqueue", "cancel", str(one.id), str(other.id), format=form, stdout=out)
    if form == "text":
        assert out.getvalue() == f"{one.id}  cancel: cancelled\n"
    else:
        assert [line["id"] for line in json.loads(out.getvalue())["tasks"]] == [str(one.id)]


def test_a_schedule_that_is_refused_keeps_no_other_from_it() -> None:
    create("a")
    create("b")
    code, said, told = tried("schedules", "pause", "a", "none", "b")
    assert (code, said, len(told.splitlines())) == (1, "1 was refused.", 3)
    assert run("schedules").count("paused") == 2
