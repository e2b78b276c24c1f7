"""The admin shows workflows, and does what people may do to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from taskqueue import chord, group, workflow
from taskqueue.admin.workflows import chart
from taskqueue.models import Audit, Lease, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.workflows import Builder
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.sample.rest_workflows import BROKEN, deliver, fragile
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish, statuses
from tests.workflows.test_running import parent

pytestmark = pytest.mark.django_db
SECRET = "correct-horse-battery-staple"


@pytest.fixture
def failed() -> Iterator[WorkflowRun]:
    BROKEN.add("load")
    yield finish(fragile.enqueue())
    BROKEN.clear()


def press(client: Client, run: WorkflowRun, verb: str, **body: Any) -> str:
    """Post a verb; the messages of the page that follows."""
    body = {"verb": verb, "confirmed": "yes", **body}
    answer = client.post(url("workflow", "act", run.id), body, follow=True)
    assert answer.status_code == 200
    return " ".join(map(str, answer.context["messages"]))


def test_the_list_shows_how_far_each_is_and_finds_them(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_workflow")
    done = finish(deliver.using(unique_key="k1").enqueue("monday"))
    waiting = deliver.enqueue("tuesday")
    waiting.pause()
    nested = finish(parent.enqueue(0))
    child = Workflow.objects.exclude(parent_step_id=None).get()
    whole = read(client, url("workflow", "changelist"))
    assert all(str(run.id) in whole for run in (done, waiting, nested))
    assert str(child.id) not in whole
    assert "2 of 2" in whole
    assert "1 of 2" in whole
    assert "taskqueue-badge--paused" in whole
    for term, found in {
        "k1": [done], str(child.id): [child], parent.name: [nested],
        deliver.name[:-1]: [waiting, done], "nothing": [],
    }.items():  # fmt: skip
        page = client.get(url("workflow", "changelist"), {"q": term})
        shown = [row.pk for row in page.context["cl"].result_list]
        assert shown == [each.id for each in found], term
    page = client.get(url("workflow", "changelist"), {"status__exact": "succeeded"})
    assert {row.pk for row in page.context["cl"].result_list} == {done.id, nested.id}


def test_the_page_of_a_failed_one_leads_to_its_error(failed: WorkflowRun, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page = read(client, url("workflow", "change", failed.id))
    task = Task.objects.get(status="failed")
    assert "load is broken" in page
    assert f'href="{url("task", "change", task.id)}"' in page
    assert 'class="tq-graph"' in page
    assert "tq-failed" in page
    assert "taskqueue-part--failed" in page
    members = read(client, f"{url('workflow', 'change', failed.id)}?step=load")
    assert "Tasks of load" in members
    task_page = read(client, url("task", "change", task.id))
    assert f'href="{url("workflow", "change", failed.id)}?step=load"' in task_page
    assert "step load" in task_page


def test_a_failed_step_is_found_retried_and_the_workflow_finishes(
    failed: WorkflowRun, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    BROKEN.clear()
    asked = client.get(url("workflow", "act", failed.id), {"verb": "retry"}).content.decode()
    assert '<option value="load">' in asked
    assert Lease.objects.count() == 1
    assert "runs again" in press(client, failed, "retry", from_step="", reason="mended")
    assert finish(failed).status == "succeeded"
    assert "runs again" in press(client, failed, "retry", from_step="store")
    assert finish(failed).status == "succeeded"
    assert Lease.objects.count() == 4
    entries = Audit.objects.filter(subject=str(failed.id)).order_by("id")
    assert list(entries.values_list("verb", "actor", "reason", "detail")) == [
        ("retry", "user", "mended", ""), ("retry", "user", "", "from step store"),
    ]  # fmt: skip
    assert "mended" in read(client, url("workflow", "change", failed.id))


def test_a_button_for_a_verb_with_a_form_shows_the_form_first(
    failed: WorkflowRun, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    for verb in ("retry", "resolve", "delete"):
        answer = client.post(url("workflow", "act", failed.id), {"verb": verb})
        assert answer.status_code == 200
        assert 'name="confirmed"' in answer.content.decode()
    failed.refresh()
    assert failed.status == "failed"
    assert not Audit.objects.exists()


def test_a_step_is_resolved_with_json(failed: WorkflowRun, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    at = url("workflow", "act", failed.id)
    body = {"verb": "resolve", "confirmed": "yes", "step": "load"}
    for value in ("{", "[" * 100_000, "nothing"):
        assert "Enter valid JSON." in client.post(at, {**body, "value": value}).content.decode()
    answer = client.post(at, {**body, "step": "store", "value": "1"}).content.decode()
    assert "errorlist" in answer
    assert failed.status == "failed"
    assert "is resolved" in press(client, failed, "resolve", step="load", value='{"rows": 0}')
    assert finish(failed).status == "succeeded"
    assert statuses(failed) == {"load": "succeeded", "store": "succeeded"}


def test_it_is_paused_resumed_cancelled_and_deleted(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    run = deliver.enqueue("monday")
    at = url("workflow", "act", run.id)
    client.post(at, {"verb": "pause"})
    assert Workflow.objects.get().paused_at is not None
    client.post(at, {"verb": "resume"})
    assert Workflow.objects.get().paused_at is None
    assert "cancel it before" in press(client, run, "delete")
    assert "asked to stop" in press(client, run, "cancel", reason="enough")
    assert finish(run).status == "cancelled"
    assert "deleted" in press(client, run, "delete")
    assert not Workflow.objects.exists()


def test_users_who_may_not_stop_get_an_error_that_says_so(log_in_as: LogIn) -> None:
    run = deliver.enqueue("monday")
    row = Task.objects.filter(status="ready").first()
    assert row is not None
    Task.objects.filter(pk=row.pk).update(status="running", running_leases=1, open_slots=0)
    Lease.objects.create(
        task=row, attempt=1, worker_id="w1", claimed_at=row.run_after, expires_at=row.run_after
    )
    client = log_in_as("staff", "view_workflow", "operate")
    assert "needs the permission to stop" in press(client, run, "cancel")
    assert Workflow.objects.get().status == "running"


def test_secrets_and_what_one_may_not_see_are_not_shown(log_in_as: LogIn) -> None:
    run = finish(deliver.enqueue("monday", token=SECRET))
    page = read(log_in_as("staff", "view_workflow"), url("workflow", "change", run.id))
    assert SECRET not in page
    assert "monday" in page
    assert "Attempts over time" not in page
    assert "Audit entries" not in page
    assert url("task", "change", Task.objects.all()[0].pk) not in page


def test_an_unknown_step_or_verb_or_workflow_is_no_error(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    run = deliver.enqueue("monday")
    for step in ("nothing", "\x00", "<script>"):
        page = client.get(url("workflow", "change", run.id), {"step": step})
        assert page.status_code == 200
        assert "<script>" not in page.content.decode().replace("<script src", "")
    assert client.get(url("workflow", "act", run.id), {"verb": "dance"}).status_code == 404
    missing = "0197a0e0-0000-7000-8000-000000000000"
    assert client.get(url("workflow", "change", missing)).status_code == 404
    assert client.get(url("workflow", "act", missing), {"verb": "retry"}).status_code == 404


@workflow
def many_steps(wf: Builder) -> None:
    for number in range(130):
        wf.step(add.s(number), name=f"add_{number}")
    wf.step(fail.s("no"), name="broken")
    wf.step(echo.s(1), name="never", after="broken")


def test_steps_are_shown_in_pages_and_by_status_and_definition(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    at = url("workflow", "change", finish(many_steps.enqueue()).id)

    def names(**query: object) -> list[str]:
        table = client.get(at, query).context["table"]
        return [step.name for step, _took, _reason in table.rows]

    assert names() == [f"add_{number}" for number in range(100)]
    assert names(page=2) == [*(f"add_{number}" for number in range(100, 130)), "broken", "never"]
    assert names(page=99) == names(page=2)
    assert names(page="\x00", status="dancing") == names()
    assert names(status="failed") == ["broken"]
    assert names(status="cancelled") == ["never"]
    assert names(runs=echo.name) == ["never"]
    assert names(runs=echo.name, status="failed") == []
    assert len(names(runs=add.name, status="succeeded", page=2)) == 30
    page = client.get(at, {"status": "succeeded"}).content.decode()
    assert "1 to 100 of 130" in page
    assert "?status=succeeded&amp;page=2#taskqueue-steps" in page


def test_of_many_reasons_five_are_shown_and_the_others_unfold(log_in_as: LogIn) -> None:
    page = read(log_in_as("superuser"), url("workflow", "change", many_steps.enqueue().id))
    shown, unfolded = page.split('<details class="taskqueue-further">')
    assert [part.count("<li>The step ") for part in (shown, unfolded)] == [5, 15]
    assert "<summary>15 more</summary>" in unfolded


def test_a_step_offers_to_retry_from_it_and_to_resolve_it(
    failed: WorkflowRun, log_in_as: LogIn
) -> None:
    at = url("workflow", "change", failed.id)
    act = url("workflow", "act", failed.id)
    client = log_in_as("superuser")
    page = read(client, f"{at}?step=load")
    for query in ("verb=retry&amp;from_step=load", "verb=resolve&amp;step=load"):
        assert f'href="{act}?{query}"' in page
    assert "verb=resolve&amp;step=store" not in read(client, f"{at}?step=store")
    asked = client.get(act, {"verb": "retry", "from_step": "load"}).content.decode()
    assert '<option value="load" selected>' in asked


def test_users_who_may_only_view_see_no_verbs(failed: WorkflowRun, log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_workflow", "view_task")
    page = read(client, f"{url('workflow', 'change', failed.id)}?step=load")
    assert "Tasks of load" in page
    assert url("workflow", "act", failed.id) not in page


def test_bars_tell_what_failed_from_what_never_ran(failed: WorkflowRun, log_in_as: LogIn) -> None:
    page = read(log_in_as("superuser"), url("workflow", "changelist"))
    assert 'aria-label="Progress: 2 of 2, 1 failed"' in page
    assert "taskqueue-part--failed" in page
    assert "taskqueue-part--cancelled" in page
    assert "taskqueue-part--succeeded" not in page


def test_the_errors_of_many_steps_take_as_many_queries_as_those_of_few(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    counts = []
    for width in (2, 12):
        maps = [fail.map(["no", "never"]) for _ in range(width)]
        run = finish(group(maps).enqueue())
        with CaptureQueriesContext(connection) as queries:
            page = read(client, url("workflow", "change", run.id))
        assert page.count("tests.sample.tasks") > width
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_chart_of_attempts_shows_every_step_and_a_part_of_a_wide_one(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart, "MOST_ATTEMPTS", 8)
    run = finish(chord([add.s(n, 1) for n in range(20)], echo.s()).enqueue())
    drawn = log_in_as("superuser").get(url("workflow", "change", run.id)).context["chart"]
    assert [(row.step, len(row.bars)) for row in drawn.rows] == [("add", 4), ("echo", 1)]
    assert drawn.is_cut
    assert len(drawn.labels) == 5


def test_a_page_makes_as_many_queries_for_wide_workflows(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    counts = []
    for width in (2, 30):
        run = finish(chord([add.s(n, 1) for n in range(width)], echo.s()).enqueue())
        with CaptureQueriesContext(
            connection,
        ) as queries:
            read(client, url("workflow", "change", run.id))
        counts.append(len(queries))
    assert counts[0] == counts[1] < 40
    finish(chord([fail.s("no"), fail.s("never")], echo.s()).enqueue())
    with CaptureQueriesContext(connection) as queries:
        read(client, url("workflow", "changelist"))
    assert len(queries) < 20
