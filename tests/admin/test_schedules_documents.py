"""The pages that export schedules as a document and import one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from taskqueue import Every, schedules
from taskqueue.models import Audit, Schedule
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.schedule_rows import filled, simple_schedule
from tests.admin.test_admin import read, url
from tests.sample.tasks import log_in, noop

pytestmark = pytest.mark.django_db
EXPORT, IMPORT = url("schedule", "export"), url("schedule", "import")
HOUR = {"kind": "every", "interval": 3600}
EDITOR = ("view_schedule", "edit_schedules", "enqueue")


def document(*entries: dict[str, Any]) -> str:
    return json.dumps({"schedules": entries})


def entry(name: str = "hourly", **more: Any) -> dict[str, Any]:
    return {"name": name, "task": noop.name, "rule": HOUR, **more}


def test_an_export_is_a_file_without_secrets_that_can_be_imported(log_in_as: LogIn) -> None:
    simple_schedule("plain", jitter=60, max_runs=9)
    schedules.create("secret", log_in, Every(hours=1), kwargs={"user": "a", "password": "p4ss"})
    client = log_in_as("staff", *EDITOR)
    answer = client.get(EXPORT)
    assert answer["Content-Disposition"] == 'attachment; filename="schedules.json"'
    text = answer.content.decode()
    assert "p4ss" not in text
    file = SimpleUploadedFile("schedules.json", text.encode())
    shown = client.post(IMPORT, {"file": file, "show": "1"})
    assert [(each.name, each.action) for each in shown.context["done"]] == [
        ("plain", "none"), ("secret", "none"),
    ]  # fmt: skip


def test_differences_are_shown_before_anything_is_changed(log_in_as: LogIn) -> None:
    simple_schedule()
    client = log_in_as("staff", *EDITOR)
    posted = {"document": document(entry(overlap="allow"), entry(EVIL.replace("/", "")))}
    page = client.post(IMPORT, {**posted, "show": "1"})
    html = page.content.decode()
    assert EVIL.replace("/", "") not in html
    assert "<del>&quot;skip&quot;</del> <ins>&quot;allow&quot;</ins>" in html
    assert Schedule.objects.get().overlap == "skip"
    assert json.loads(page.context["form"]["document"].value()) == json.loads(posted["document"])

    answer = client.post(IMPORT, {**posted, "import": "1", "reason": "moved"})
    assert answer.headers["Location"] == url("schedule", "changelist")
    assert Schedule.objects.get(name="hourly").overlap == "allow"
    assert set(Audit.objects.filter(reason="moved").values_list("verb", "actor")) == {
        ("create", "user"), ("edit", "user"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        (document(entry(overlapp="skip")), "Did you mean"),
        (document(entry("a", jitter=-1), entry("b", max_runs=0)), "b: max_runs"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_written(
    text: str, told: str, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", *EDITOR)
    page = client.post(IMPORT, {"document": text, "import": "1"}).content.decode()
    assert told in page
    assert "Nothing was imported" in page
    assert not Schedule.objects.exists()


def test_a_file_that_is_no_text_is_refused(log_in_as: LogIn) -> None:
    file = SimpleUploadedFile("schedules.json", b"\xff\xfe")
    page = log_in_as("staff", *EDITOR).post(IMPORT, {"file": file, "import": "1"})
    assert "not UTF-8" in page.content.decode()


def test_the_list_leads_to_both(log_in_as: LogIn) -> None:
    simple_schedule()
    client = log_in_as("staff", *EDITOR)
    page = read(client, url("schedule", "changelist"))
    assert f'href="{EXPORT}"' in page
    assert f'href="{IMPORT}"' in page


def test_jitter_and_runs_are_set_by_the_form_and_shown(log_in_as: LogIn) -> None:
    client = log_in_as("staff", *EDITOR)
    client.post(url("schedule", "add"), filled(jitter_0="5", jitter_1="60", max_runs="3"))
    row = Schedule.objects.get()
    assert (row.jitter, row.max_runs) == (row.jitter, 3)
    assert row.jitter is not None
    assert row.jitter.total_seconds() == 300
    page = read(client, url("schedule", "change", row.pk))
    for text in ("0:05:00", "runs so far", "max runs"):
        assert text in page.lower()
    edit = client.get(url("schedule", "edit", row.pk))
    assert edit.context["form"]["jitter"].initial == row.jitter
    Schedule.objects.update(run_count=3, next_at=None)
    assert "over" in read(client, url("schedule", "changelist"))
    wrong = client.post(
        url("schedule", "edit", row.pk), filled(jitter_0="2", jitter_1="86400", max_runs="0")
    )
    assert set(wrong.context["form"].errors) == {"jitter", "max_runs"}


def test_a_list_of_those_that_are_active_keeps_those_that_wait_for_an_end(
    log_in_as: LogIn,
) -> None:
    row = simple_schedule("waits")
    Schedule.objects.filter(id=row.id).update(
        rule={"kind": "after_end", "interval": 60}, next_at=None
    )
    Schedule.objects.create(
        name="done", task_name=noop.name, rule={"kind": "after_end", "interval": 60}, request={},
        served_until=row.served_until, max_runs=2, run_count=2,
    )  # fmt: skip
    client = log_in_as("staff", *EDITOR)
    for state, name in (("active", "waits"), ("over", "done")):
        answer = client.get(url("schedule", "changelist"), {"state": state})
        assert [found.name for found in answer.context["cl"].result_list] == [name]
