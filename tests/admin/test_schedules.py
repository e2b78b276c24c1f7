"""The admin shows schedules and the outcomes of their times, to users who may view them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import schedules
from taskqueue.models import Occurrence, Schedule, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.schedule_rows import (
    declared_schedule,
    evil_schedule,
    simple_schedule,
)
from tests.admin.test_admin import ROLES, read, url
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
"""Session, user, two of permissions, then the page's own: the row, its times, its occurrences."""


@pytest.mark.parametrize(("role", "status"), ROLES.items())
def test_schedules_and_occurrences_are_for_those_who_may_view(
    role: str, status: int, log_in_as: LogIn
) -> None:
    schedule = evil_schedule()
    occurrence, client = Occurrence.objects.get(), log_in_as(role)
    for address in (
        url("schedule", "changelist"), url("schedule", "change", schedule.pk),
        url("schedule", "history", schedule.pk), url("occurrence", "changelist"),
        url("occurrence", "change", occurrence.pk),
    ):  # fmt: skip
        assert client.get(address).status_code == status, address


def test_occurrences_and_the_audit_need_permissions_of_their_own(log_in_as: LogIn) -> None:
    schedule = evil_schedule()
    page = read(log_in_as("viewer", "view_schedule"), url("schedule", "change", schedule.pk))
    assert "taskqueue-occurrences" not in page
    assert url("audit", "changelist") not in page


@pytest.mark.parametrize("role", ["viewer", "superuser"])
def test_hostile_text_is_shown_as_text_and_secrets_nowhere(role: str, log_in_as: LogIn) -> None:
    schedule, client = evil_schedule(), log_in_as(role)
    pages = [
        read(client, url("schedule", "changelist")),
        read(client, url("schedule", "change", schedule.pk)),
        read(client, url("occurrence", "changelist")),
        read(client, url("occurrence", "change", Occurrence.objects.get().pk)),
    ]
    if role == "superuser":
        pages.append(read(client, url("schedule", "delete", schedule.pk)))
        pages.append(read(client, url("schedule", "edit", schedule.pk)))
        pages.append(read(client, url("schedule", "history", schedule.pk)))
    for page in pages:
        assert "<script>alert" not in page
        assert SECRET not in page
        assert "&lt;script&gt;alert" in page
    assert "[redacted]" in pages[1]


def test_a_page_shows_the_rule_in_words_and_its_next_times_here_and_there(
    log_in_as: LogIn,
) -> None:
    schedule = evil_schedule()
    schedules.resume(schedule.name)
    page = read(log_in_as("viewer"), url("schedule", "change", schedule.pk))
    assert "06:00" in page
    assert "Europe/Berlin" in page
    times = schedules.preview(schedule.name)
    assert len(times) == 5
    for at in times:
        assert at.strftime("%Y-%m-%d %H:%M:%S +0000") in page
    assert page.count("06:00:00 +0") == 5


def test_a_page_shows_the_last_run_also_after_its_task_is_pruned(log_in_as: LogIn) -> None:
    schedule = simple_schedule()
    occurrence = schedules.run_now(schedule.name, by="ann")
    Schedule.objects.update(last_status="succeeded", last_return_value={"sent": 4711})
    client, task_id = log_in_as("viewer"), str(occurrence.task_id)
    page = read(client, url("schedule", "change", schedule.pk))
    assert url("task", "change", task_id) in page
    assert "4711" in page
    assert ">ann</td>" in page
    assert schedule.name in read(client, url("task", "change", task_id))
    Task.objects.all().delete()
    page = read(client, url("schedule", "change", schedule.pk))
    assert url("task", "change", task_id) not in page
    assert task_id in page
    assert "4711" in page
    assert "pruned" in read(client, url("occurrence", "changelist"))


def test_arguments_of_an_unknown_definition_need_a_permission(log_in_as: LogIn) -> None:
    schedule = evil_schedule()
    Schedule.objects.update(task_name="shop.tasks.gone")
    client = log_in_as("viewer", "view_schedule", "edit_schedules", "enqueue")
    for page in ("change", "edit"):
        assert SECRET not in read(client, url("schedule", page, schedule.pk))
    assert "taskqueue.view_arguments" in read(client, url("schedule", "change", schedule.pk))


def test_who_has_that_permission_sees_them(log_in_as: LogIn) -> None:
    schedule = evil_schedule()
    Schedule.objects.update(task_name="shop.tasks.gone")
    client = log_in_as("viewer", "view_schedule", "edit_schedules", "enqueue", "view_arguments")
    for page in ("change", "edit"):
        assert SECRET in read(client, url("schedule", page, schedule.pk))


def test_a_declared_schedule_says_where(log_in_as: LogIn) -> None:
    schedule = declared_schedule()
    page = read(log_in_as("superuser"), url("schedule", "change", schedule.pk))
    assert "declared next to tests.sample.tasks.noop in the module tests.sample.tasks" in page
    assert 'id="taskqueue-edit"' not in page
    assert 'id="taskqueue-delete"' not in page


def test_a_rule_of_another_version_breaks_no_page(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    for rule in ({"kind": "lunar"}, [], "x"):
        Schedule.objects.update(rule=rule)
        assert "A rule that cannot be read" in read(client, url("schedule", "changelist"))
        read(client, url("schedule", "change", schedule.pk))
        read(client, url("schedule", "edit", schedule.pk))


# Cost


def test_lists_and_pages_cost_few_queries_however_much_there_is(
    log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    now = timezone.now()
    for number in range(60):
        simple_schedule(f"schedule {number}")
    schedule = Schedule.objects.order_by("id")[0]
    task = noop.enqueue()
    Occurrence.objects.bulk_create(
        Occurrence(schedule=schedule, nominal_at=now + timedelta(minutes=number), status="ended",
                   task_id=task.id)
        for number in range(500)
    )  # fmt: skip
    client = log_in_as("viewer")
    for address in (
        url("schedule", "changelist"), url("schedule", "change", schedule.pk),
        url("occurrence", "changelist"),
        url("occurrence", "changelist") + f"?schedule__id__exact={schedule.pk}&status=ended",
    ):  # fmt: skip
        with (
            django_assert_max_num_queries(MOST_QUERIES),
            CaptureQueriesContext(connection) as queries,
        ):
            read(client, address)
        for query in queries:
            if "COUNT(" in query["sql"]:
                assert "LIMIT 10000" in query["sql"]
    page = client.get(url("schedule", "change", schedule.pk))
    assert len(page.context["occurrences"]) == 20


def test_lists_read_no_large_column(log_in_as: LogIn) -> None:
    evil_schedule()
    client = log_in_as("superuser")
    for model in ("schedule", "occurrence"):
        with CaptureQueriesContext(connection) as queries:
            read(client, url(model, "changelist"))
        asked = " ".join(query["sql"] for query in queries if "taskqueue_" in query["sql"])
        for column in ("args", "kwargs", "request", "last_return_value", "last_error", "options"):
            assert f'"{column}"' not in asked, model


def test_pages_hold_no_script_or_style_of_ours(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    for address in (
        url("schedule", "change", schedule.pk), url("schedule", "edit", schedule.pk),
        url("schedule", "add"), url("schedule", "delete", schedule.pk),
        url("schedule", "changelist"), url("occurrence", "changelist"),
    ):  # fmt: skip
        page = read(client, address)
        for part in page.split("taskqueue")[1:]:
            assert "style=" not in part[:300]
        assert "onclick=" not in page
        assert all("src=" in tag[:300] for tag in page.split("<script")[1:] if "json" not in tag)
    assert EVIL not in read(client, url("schedule", "changelist"))
