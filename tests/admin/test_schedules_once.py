"""A schedule is run once however often the button is pressed, also at the same time."""

from __future__ import annotations

from threading import Barrier
from uuid import UUID

import pytest
from django.test import Client

from taskqueue import schedules
from taskqueue.core.uuid7 import uuid7
from taskqueue.exceptions import RequestedBefore
from taskqueue.models import Audit, Occurrence, Schedule, Task
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import messages_of, simple_schedule
from tests.admin.test_admin import url
from tests.admin.test_once import once_of
from tests.admin.test_schedules_acts import LIST, chosen, state
from tests.engine.steps import run_at_once
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db
WAYS = ("button", "list", "arguments")


def asked(way: str, schedule: Schedule) -> tuple[str, str, dict[str, object]]:
    """A page that runs it, where it is posted to, and with what."""
    page = url("schedule", "change", schedule.pk)
    if way == "button":
        return page, url("schedule", "act", schedule.pk), {"verb": "run_now"}
    if way == "list":
        return LIST, LIST, chosen("run_now", schedule)
    page = url("schedule", "run", schedule.pk)
    return page, page, {"arg_a": "5", "arg_b": "2"}


def overlapping() -> Schedule:
    """One whose runs may overlap, so that its policy refuses none."""
    return simple_schedule(task=add, args=[1], overlap="allow")


@pytest.mark.parametrize("way", WAYS)
def test_a_second_press_makes_no_second_run(way: str, log_in_as: LogIn) -> None:
    page, address, given = asked(way, overlapping())
    client = log_in_as("superuser")
    given["once"] = once_of(client, page)
    assert once_of(client, page) != given["once"]
    assert "requested" in messages_of(client, address, given)
    before = state()
    assert "already done" in messages_of(client, address, given)
    assert state() == before
    assert Task.objects.count() == 1
    messages_of(client, address, {**given, "once": once_of(client, page)})
    assert Task.objects.count() == 2


def test_one_press_runs_each_of_the_chosen_schedules(log_in_as: LogIn) -> None:
    rows = [simple_schedule(name) for name in ("a", "b")]
    client = log_in_as("superuser")
    given = {**chosen("run_now", *rows), "once": once_of(client, LIST)}
    for _ in range(2):
        messages_of(client, LIST, given)
    assert sorted(Occurrence.objects.values_list("schedule__name", flat=True)) == ["a", "b"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", WAYS)
def test_two_presses_at_the_same_time_make_one_run(way: str, log_in_as: LogIn) -> None:
    page, address, given = asked(way, overlapping())
    client = log_in_as("superuser")
    given["once"] = once_of(client, page)
    both, answers = Barrier(2), list[int]()

    def press() -> None:
        own = Client()
        own.cookies = client.cookies
        both.wait(60)
        answers.append(own.post(address, given).status_code)

    run_at_once([press, press])
    assert answers == [302, 302]
    assert Task.objects.count() == Occurrence.objects.count() == 1
    assert Audit.objects.filter(verb="run_now").count() == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_id_that_no_page_gave_out_lately_is_refused(way: str, log_in_as: LogIn) -> None:
    _, address, given = asked(way, overlapping())
    client = log_in_as("superuser")
    old = UUID(int=uuid7().int - (90_000 * 1000 << 80))
    before = state()
    for wrong in ("x", str(old)):
        answer = client.post(address, {**given, "once": wrong}, follow=True)
        assert "This form had expired" in answer.content.decode(), wrong
    assert state() == before


def test_pausing_and_resuming_are_not_kept_from_a_second_press(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address, once = url("schedule", "act", schedule.pk), str(uuid7())
    for verb in ("pause", "resume", "pause"):
        messages_of(client, address, {"verb": verb, "once": once})
    assert schedules.get(schedule.name).paused_at is not None


def test_a_call_with_the_id_of_an_earlier_one_is_refused() -> None:
    first, other = (simple_schedule(name).name for name in ("a", "b"))
    request_id = uuid7()
    schedules.run_now(first, request_id=request_id)
    with pytest.raises(RequestedBefore, match="'a' was run for this request already"):
        schedules.run_now(first, request_id=request_id)
    schedules.run_now(other, request_id=request_id)
    assert Task.objects.count() == 2
