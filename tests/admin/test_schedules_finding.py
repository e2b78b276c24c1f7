"""The admin finds schedules and their occurrences without reading all of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import AfterEnd, Once, schedules
from taskqueue.admin import occurrences
from taskqueue.models import Occurrence, Schedule
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import declared_schedule, evil_schedule, simple_schedule
from tests.admin.test_admin import read, url
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def found(client: Any, **filters: str) -> list[str]:
    answer = client.get(url("schedule", "changelist"), filters)
    assert answer.status_code == 200, filters
    return [schedule.name for schedule in answer.context["cl"].result_list]


def test_schedules_are_filtered_by_state_and_source(log_in_as: LogIn) -> None:
    for name in ("active", "disabled", "paused", "removed", "trouble", "over", "waits", "overdue"):
        simple_schedule(name)
    rows = Schedule.objects
    rows.filter(name="disabled").update(is_enabled=False)
    schedules.pause("paused", by="ann")
    late = timezone.now() - timedelta(hours=1)
    rows.filter(name__in=("overdue", "paused")).update(next_at=late)
    rows.filter(name="removed").update(removed_at=timezone.now(), source="code")
    rows.filter(name="trouble").update(trouble="it broke")
    once = Once(timezone.now()).as_json()
    rows.filter(name="over").update(next_at=None, rule=once)
    rows.filter(name="waits").update(next_at=None, rule=AfterEnd(60).as_json())
    client = log_in_as("viewer")
    for state in ("disabled", "paused", "removed", "trouble", "over", "overdue"):
        assert found(client, state=state) == [state]
    assert found(client, state="active") == ["active", "overdue", "waits"]
    assert found(client, source__exact="code") == ["removed"]
    assert len(found(client, state="none")) == 8
    page = read(client, url("schedule", "changelist"))
    for words in ("paused by ann", "disabled", "removed from code", "has a problem", "over"):
        assert words in page


def test_schedules_are_found_by_the_beginning_of_a_name_or_by_task(log_in_as: LogIn) -> None:
    for name in ("mail", "mail%", "more mail", "Mail"):
        simple_schedule(name)
    client = log_in_as("viewer")
    assert found(client, q="mail") == ["mail", "mail%"]
    assert found(client, q="mail%") == ["mail%"]
    assert found(client, q="%") == found(client, q="x" * 1000) == []
    assert len(found(client, q=noop.name)) == 4


@pytest.mark.parametrize("permission", ["edit_schedules enqueue", "edit_schedules", ""])
def test_the_list_leads_to_the_form_for_those_who_may_edit(
    permission: str, log_in_as: LogIn
) -> None:
    edited, declared = simple_schedule(), declared_schedule()
    client = log_in_as("staff", "view_schedule", *permission.split())
    page = read(client, url("schedule", "changelist"))
    assert (url("schedule", "edit", edited.pk) in page) == ("enqueue" in permission)
    assert url("schedule", "edit", declared.pk) not in page


@pytest.mark.parametrize(
    "lookup", ["args__icontains", "kwargs__password__startswith", "last_task__args__0", "options"]
)
def test_the_address_of_a_list_cannot_be_used_to_guess_a_secret(
    lookup: str, log_in_as: LogIn
) -> None:
    evil_schedule()
    client = log_in_as("superuser")
    assert client.get(url("schedule", "changelist"), {lookup: "c"}).status_code == 400
    for start in ("schedule__", "task__"):
        address = url("occurrence", "changelist")
        assert client.get(address, {f"{start}{lookup}": "c"}).status_code == 400


def test_occurrences_are_filtered_by_status_and_by_schedule(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "MOST", 5)
    one, other = simple_schedule("one"), simple_schedule("other")
    now = timezone.now()
    for number in range(10):
        for schedule, status in ((one, "skipped"), (other, "ended"), (other, "waiting")):
            at = now + timedelta(minutes=number, seconds=len(status))
            Occurrence.objects.create(schedule=schedule, nominal_at=at, status=status)
    client, address = log_in_as("viewer"), url("occurrence", "changelist")

    def count(**filters: object) -> int:
        return int(client.get(address, filters).context["cl"].result_count)

    assert count() == 30
    assert count(status="waiting") == 10
    assert 1 <= count(status="skipped") <= 5
    assert count(schedule__id__exact=one.pk) == 10
    assert count(schedule__id__exact=one.pk, status="skipped") == 5
    assert count(schedule__id__exact=one.pk, status="waiting") == 0
    assert client.get(address, {"schedule__id__exact": "x"}).status_code == 302
    assert count(schedule__id__exact="9" * 30) == count(schedule__id__exact="0") == 0
