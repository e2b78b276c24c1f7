"""What was done, and what became of a schedule's times, told over REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import Every, schedules
from taskqueue.models import Audit, Occurrence
from tests.api.conftest import ApiClient
from tests.sample.tasks import greet

pytestmark = pytest.mark.django_db


def pages(root: ApiClient, path: str) -> list[list[Any]]:
    """The rows of each page."""
    found = []
    while path:
        told = root.look(path).json()
        found.append(told["results"])
        path = (told["next"] or "").partition("/api/v1/")[2]
    return found


def test_an_act_is_told_with_who_and_why(root: ApiClient) -> None:
    root.act("queues/mail/pause/", {"reason": "a fire"})
    [line] = root.look("audit/").json()["results"]
    told = [line[name] for name in ("actor", "verb", "subject", "reason", "before")]
    assert told == ["root", "pause", "mail", "a fire", ""]
    assert root.look("audit/", if_none_match=root.look("audit/")["ETag"]).status_code == 304


def test_the_audit_comes_by_pages_of_one_subject_or_of_all(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    Audit.objects.bulk_create(
        Audit(verb="pause", subject=("mail", "web")[number % 2], detail=str(number))
        for number in range(6)
    )
    details = [[each["detail"] for each in page] for page in pages(root, "audit/?limit=4")]
    assert details == [["5", "4", "3", "2"], ["1", "0"]]
    of_web = pages(root, "audit/?limit=2&subject=web")
    assert [[each["detail"] for each in page] for page in of_web] == [["5", "3"], ["1"]]
    assert root.look("audit/?subject=nobody").json() == {"results": [], "next": None}
    assert len(root.look("audit/?verb=pause&since=2026-01-01T00:00:00Z").json()["results"]) == 6
    assert root.look("audit/?verb=resume").json()["results"] == []
    for wrong in (
        "since=x",
        "cursor=x",
        "cursor=-1",
        f"cursor={2**63}",
        "cursor=%D9%A3",
        "subject=%00",
    ):
        assert root.look(f"audit/?{wrong}").status_code == 400, wrong
    assert member("view_task").look("audit/").status_code == 403


def test_the_runs_of_a_schedule_come_by_pages(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    made = schedules.create("hourly", greet, Every(hours=1), args=["Ann"])
    other = schedules.create("other", greet, Every(hours=1), args=["Ann"])
    now = timezone.now().replace(microsecond=0)
    for hours in range(5):
        for schedule in (made, other):
            Occurrence.objects.create(
                schedule=schedule, nominal_at=now - timedelta(hours=hours), status="skipped",
                reason=f"{schedule.name} {hours}",
            )  # fmt: skip
    found = pages(root, "schedules/hourly/runs/?limit=2")
    reasons = [[each["reason"] for each in page] for page in found]
    assert reasons == [["hourly 0", "hourly 1"], ["hourly 2", "hourly 3"], ["hourly 4"]]
    assert found[0] == root.look("schedules/hourly/").json()["last_runs"][:2]
    assert root.look("schedules/none/runs/").status_code == 404
    assert root.look("schedules/hourly/runs/?cursor=x").status_code == 400
    assert member("view_schedule").look("schedules/hourly/runs/").status_code == 403
