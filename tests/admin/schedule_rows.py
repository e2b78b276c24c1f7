"""Schedules for the admin to show and change."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.test import Client
from django.utils import timezone

from taskqueue import Cron, Every, schedules
from taskqueue.models import Occurrence, Schedule
from tests.admin.rows import EVIL, SECRET
from tests.sample.tasks import log_in, noop

BERLIN = ZoneInfo("Europe/Berlin")


def evil_schedule() -> Schedule:
    """One with a secret, whose texts are all hostile; an occurrence of it was skipped."""
    made = schedules.create(
        EVIL.replace("/", ""), log_in, Cron("0 6 * * 1-5", tz="Europe/Berlin"),
        args=[EVIL, SECRET], options={"metadata": {"note": EVIL}}, by="ann",
    )  # fmt: skip
    schedules.pause(made.name, by=EVIL, reason=EVIL)
    now = timezone.now()
    Schedule.objects.filter(id=made.id).update(
        last_error=EVIL, last_status="failed", last_finished_at=now, trouble=EVIL
    )
    Occurrence.objects.create(
        schedule_id=made.id, nominal_at=now, status="skipped", reason=EVIL, requested_by=EVIL
    )
    return Schedule.objects.get(id=made.id)


def simple_schedule(name: str = "hourly", **options: Any) -> Schedule:
    """One of every hour."""
    return schedules.create(name, options.pop("task", noop), Every(hours=1), **options)


def declared_schedule(name: str = "declared") -> Schedule:
    """One that code declares."""
    made = simple_schedule(name)
    Schedule.objects.filter(id=made.id).update(source="code")
    return Schedule.objects.get(id=made.id)


def filled(**changes: Any) -> dict[str, Any]:
    """What the form posts for a schedule of weekday mornings, with these changes."""
    return {
        "name": "mornings", "task": "tests.sample.tasks.noop", "enabled": "on", "kind": "cron",
        "tz": "Europe/Berlin", "expression": "0 6 * * mon-fri", "interval_0": "",
        "interval_1": "1", "first": "", "last": "", "every_0": "", "every_1": "60",
        "days": ["mon", "tue"], "at": "", "start": "", "end": "", "args": "[]", "kwargs": "{}",
        "queue_name": "", "priority": "", "options": "{}", "missed": "latest",
        "missed_window_0": "", "missed_window_1": "1", "overlap": "skip",
        "pause_after_failures": "", "reason": "",
    } | changes  # fmt: skip


def errors_of(client: Client, address: str, **changes: Any) -> dict[str, list[str]]:
    """Beside which fields the form tells what."""
    answer = client.post(address, filled(**changes))
    assert answer.status_code == 200, (answer.status_code, changes)
    return dict(answer.context["form"].errors)


def messages_of(client: Client, address: str, given: dict[str, Any]) -> str:
    """What is told after a POST."""
    answer = client.post(address, given, follow=True)
    assert answer.status_code == 200, answer.status_code
    return " ".join(map(str, answer.context["messages"]))
