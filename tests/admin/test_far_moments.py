"""The first and the last moments of the calendar, where the local time has none such."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue.models import Operation, Schedule
from tests.admin.conftest import LogIn
from tests.admin.everything import Everything, everything
from tests.admin.matrix.table import PAGES
from tests.admin.pages import text_of, variants
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
FAR = {"Asia/Shanghai": LAST, "America/New_York": FIRST}
CHOSEN = {
    "deadline_at", "last_nominal_at", "next_at", "nominal_at", "paused_until", "run_after",
    "served_until",
}  # fmt: skip
"""Moments that people and rules choose; the others are told by clocks."""
ROUTES = [route for route in sorted(PAGES) if PAGES[route].look]


@pytest.fixture(scope="module", params=sorted(FAR))
def made(request: Any, django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """Rows of each kind, whose moments lie where that zone's calendar has none."""
    far = FAR[request.param]
    with django_db_blocker.unblock(), atomic():
        rows = everything("plain")
        rows.rows["zone"] = request.param
        client = rows.rows["root"] = Client()
        client.force_login(User.objects.create_superuser("root"))
        for model in apps.get_app_config("taskqueue").get_models():
            if not model._meta.proxy:
                _move(model, far)
        Schedule.objects.update(rule={"kind": "once", "at": far.isoformat()})
        yield rows
        set_rollback(True)


def _move(model: Any, far: datetime) -> None:
    """A little apart from other rows': some are unique."""
    names = CHOSEN & {each.name for each in model._meta.fields}
    towards = timedelta(microseconds=1 if far == FIRST else -1)
    for place, row in enumerate(model.objects.order_by("pk")):
        is_due = getattr(row, "status", "") == "ready"
        given = names - {"run_after"} if far == LAST and is_due else names
        model.objects.filter(pk=row.pk).update(**dict.fromkeys(given, far + place * towards))


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_a_page_shows_moments_for_which_there_is_no_local_time(
    route: str, made: Everything, settings: Any
) -> None:
    settings.TIME_ZONE = made.rows["zone"]
    for url, query in variants(route, made):
        response = made.rows["root"].get(url, query)
        text_of(response)
        assert response.status_code in (200, 302, 400, PAGES[route].answers), (url, query)


@pytest.mark.parametrize(
    ("zone", "typed"),
    [("America/New_York", "9999-12-31T23:59"), ("Asia/Shanghai", "0001-01-01T00:00")],
)
def test_a_time_that_lies_outside_of_the_calendar_is_refused(
    zone: str, typed: str, log_in_as: LogIn, settings: Any
) -> None:
    settings.TIME_ZONE = zone
    client = log_in_as("superuser")
    echo.using(run_after=LAST).enqueue(1)
    given = {"verb": "reschedule", "confirmed": "yes", "q": "status:scheduled"}
    page = client.post("/admin/taskqueue/operation/start/", {**given, "run_after": typed})
    assert "errorlist" in page.content.decode()
    assert not Operation.objects.filter(verb="reschedule").exists()
