"""Schedules in a real browser: made, looked at, paused, resumed, run and edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from taskqueue.models import Occurrence, Schedule
from tests.browser.chromium import await_rows, click_through, log_in
from tests.browser.test_admin_pages import look

pytestmark = pytest.mark.slow
EVIL = "<script>document.title = 'gotcha'</script>"


def test_a_schedule_is_made_paused_resumed_run_and_edited(page: Any, tmp_path: Path) -> None:
    User.objects.create_superuser("admin", password="admin")
    log_in(page)

    create(page, tmp_path)
    assert "Europe/Berlin" in page.inner_text(".field-rule_text")
    await_rows(page, ".taskqueue-times tbody tr", 5)
    look(page, tmp_path, "schedule")

    page.fill("#taskqueue-reason", EVIL)
    click_through(page, ".taskqueue-acts >> text=Pause")
    await_rows(page, ".messagelist .success", 1)
    assert "paused by admin" in page.inner_text(".field-state")
    assert EVIL in page.inner_text(".field-why_paused")
    look(page, tmp_path, "schedule-paused")
    click_through(page, ".taskqueue-acts >> text=Resume")
    page.wait_for_selector(".field-state :text-is('active')")

    click_through(page, ".taskqueue-acts >> text=Run now")
    await_rows(page, "#taskqueue-occurrences tbody a", 1)
    click_through(page, ".taskqueue-acts >> text=Run now")
    await_rows(page, ".messagelist .error", 1)
    look(page, tmp_path, "schedule-refused")

    click_through(page, "#taskqueue-edit")
    edit(page, tmp_path)
    assert "Every 10 seconds" in page.inner_text(".field-rule_text")
    click_through(page, "text=All occurrences")
    await_rows(page, "#result_list tbody tr", 1)
    look(page, tmp_path, "occurrences")
    click_through(page, "#result_list .field-schedule_link a")
    click_through(page, "#taskqueue-delete")
    look(page, tmp_path, "schedule-delete")
    page.goto("/admin/taskqueue/schedule/")
    await_rows(page, "#result_list tbody tr", 1)
    look(page, tmp_path, "schedules")
    assert "gotcha" not in page.title()
    assert Schedule.objects.get().rule["kind"] == "every"
    assert Occurrence.objects.get().requested_by == "admin"


def create(page: Any, directory: Path) -> None:
    """By the form, which shows the fields of the chosen kind, and what is wrong with one."""
    click_through(page, ".model-schedule a:has-text('Add')")
    page.wait_for_selector("#id_name")
    assert page.is_visible("#id_expression")
    assert not page.is_visible("#id_interval_0")
    page.select_option("#id_kind", "daily_window")
    assert page.is_visible("#id_first")
    assert not page.is_visible("#id_expression")
    look(page, directory, "schedule-window")
    page.select_option("#id_kind", "cron")
    page.fill("#id_name", "weekday mornings")
    page.select_option("#id_task", "tests.sample.tasks.add")
    page.wait_for_selector("#id_arg_a")
    page.fill("#id_tz", "Europe/Berlin")
    page.fill("#id_expression", "61 6 * * mon-fri")
    page.fill("#id_arg_a", "1")
    click_through(page, "text=Save")
    await_rows(page, ".taskqueue-field:has(#id_expression) .errorlist", 1)
    look(page, directory, "schedule-wrong")
    page.fill("#id_expression", "0 6 * * mon-fri")
    click_through(page, "text=Save")
    page.wait_for_selector("#taskqueue-occurrences")


def edit(page: Any, directory: Path) -> None:
    """From cron to every ten seconds."""
    page.wait_for_selector("#id_kind")
    assert page.input_value("#id_expression") == "0 6 * * mon-fri"
    page.select_option("#id_kind", "every")
    page.fill("#id_interval_0", "10")
    look(page, directory, "schedule-edit")
    click_through(page, "text=Save")
    page.wait_for_selector("#taskqueue-occurrences")


def test_the_form_works_without_its_script(client: Client, db: None) -> None:
    User.objects.create_superuser("admin", password="admin")
    client.login(username="admin", password="admin")
    page = client.get("/admin/taskqueue/schedule/add/").content.decode()
    for name in ("expression", "interval_0", "first", "last", "every_0", "at", "start", "end"):
        assert f'name="{name}"' in page
