"""Failed steps are told with the retry of their workflow, because theirs is refused."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Task
from taskqueue.monitoring.notices import Notice, notices
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_due
from taskqueue.workflows import Builder, workflow
from tests.admin.conftest import LogIn
from tests.admin.test_dashboard import read, region
from tests.admin.test_dashboard_remedies import links
from tests.engine.steps import claim_one, end
from tests.management.test_taskqueue import refused, run
from tests.sample.tasks import fail, noop
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db


@workflow(name="tests.failing_inside")
def inside(wf: Builder) -> None:
    wf.step(fail.s(), name="fails")


@workflow(name="tests.failing_around")
def around(wf: Builder) -> None:
    wf.step(inside.s(), name="inside")


def new_error() -> Notice:
    [found] = [notice for notice in notices() if notice.code == "new_error"]
    return found


def shown(client: Client) -> dict[str, str]:
    return links(region(read(client), "notices"))


def offered(client: Client) -> list[str]:
    """The buttons of the groups on the page of failures."""
    html = client.get("/admin/taskqueue/failure/").content.decode()
    return re.findall(r'role="button" href="[^"]+">([^<]+)<', html)


def test_a_command_says_why_it_refused_all_and_fails() -> None:
    outer = finish(around.enqueue())
    ask = ("retry", "--query", f"name:{fail.name} status:failed")
    command = f"manage.py taskqueue workflows retry {outer.id}"
    assert run(*ask, "--dry-run").endswith(f"{command}\n")
    code, said = refused(*ask, "--yes")
    assert (code, said.endswith(command)) == (1, True), said
    assert "Refused because they belong to workflows: 1." in said


def test_a_command_that_did_some_says_why_it_refused_the_others() -> None:
    finish(around.enqueue())
    noop.enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="why", traceback="")
    said = run("retry", "--query", "status:failed", "--yes")
    assert said.startswith("retry: 2 matched, 1 done, 1 refused. Refused because they belong to")


def test_a_command_for_statuses_that_do_not_allow_it_fails() -> None:
    noop.enqueue()
    code, said = refused("retry", "--all", "--yes")
    assert (code, said) == (
        1, "Only finished tasks and running tasks of lost workers can be retried."
    )  # fmt: skip
    assert run("retry", "--name", "no.such", "--yes") == "retry: 0 matched, 0 done, 0 refused\n"


def test_a_new_error_is_remedied_by_a_retry_of_this_error_alone() -> None:
    noop.enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="a.E", error_message="why", traceback="")
    query = f"name:{noop.name} status:failed class:a.E"
    assert new_error().remedy.endswith(f"manage.py taskqueue retry --query '{query}'")


def test_a_new_error_of_a_step_is_remedied_by_a_retry_of_the_outermost_workflow() -> None:
    outer = finish(around.enqueue())
    assert f"manage.py taskqueue workflows retry {outer.id}." in new_error().remedy


def test_the_dashboard_leads_to_the_workflows_of_failed_steps(log_in_as: LogIn) -> None:
    outer = finish(around.enqueue())
    client = log_in_as("superuser")
    found = shown(client)
    assert "Retry all…" not in found
    assert found["Workflow"] == f"/admin/taskqueue/workflow/{outer.id}/change/"
    again = finish(inside.enqueue())
    listed = client.get(shown(client)["Failed workflows"])
    rows = listed.context["cl"].result_list
    assert {row.id for row in rows} == {outer.id, again.id}


@pytest.fixture
def mixed() -> WorkflowRun:
    """A failed workflow of one step, and two ordinary tasks that failed like it, later."""
    run = finish(inside.enqueue())
    for _ in range(2):
        fail.enqueue()
    run_due(errors="record")
    return run


def test_the_remedy_of_a_mixed_kind_retries_the_tasks_and_the_workflows(mixed: WorkflowRun) -> None:
    found = new_error()
    assert (found.count, found.in_workflows, found.has_others) == (3, 1, True)
    assert f"manage.py taskqueue retry --query 'name:{fail.name} " in found.remedy
    assert "Tasks of workflows, which this leaves out: 1." in found.remedy
    assert f"manage.py taskqueue workflows retry {mixed.id}." in found.remedy


def test_a_kind_of_which_an_ordinary_task_failed_first_leads_to_the_workflows_too() -> None:
    fail.enqueue()
    run_due(errors="record")
    run = finish(inside.enqueue())
    found = new_error()
    assert (found.count, found.in_workflows, found.workflow) == (2, 1, str(run.id))


def test_the_dashboard_retries_the_ordinary_tasks_of_a_mixed_kind(
    mixed: WorkflowRun, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    found = shown(client)
    assert found["Workflow"] == f"/admin/taskqueue/workflow/{mixed.id}/change/"
    asked = client.get(found["Retry 2 of 3…"])
    assert asked.context["doable"].value == 2


def test_the_page_of_failures_acts_on_the_ordinary_tasks_of_a_mixed_group(
    mixed: WorkflowRun, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    assert offered(client) == ["Retry 2 of 3", "Delete 2 of 3", "Failed workflows"]
    Task.objects.filter(step=None).delete()
    assert offered(client) == ["Failed workflows"]


def test_the_page_of_failures_offers_what_its_reader_may_do(
    mixed: WorkflowRun, log_in_as: LogIn
) -> None:
    assert offered(log_in_as("viewer", "view_task", "operate")) == ["Retry 2 of 3"]


def test_the_command_for_failures_says_how_many_a_retry_leaves_out(
    mixed: WorkflowRun, capsys: pytest.CaptureFixture[str]
) -> None:
    head, group = (line.split() for line in run("failures").splitlines()[:2])
    assert dict(zip(head, group, strict=False))["in_workflows"] == "1"
    assert "Tasks of workflows, which this leaves out: 1." in capsys.readouterr().err


def test_only_those_who_may_view_workflows_are_led_to_them(log_in_as: LogIn) -> None:
    finish(inside.enqueue())
    assert shown(log_in_as("viewer", "view_task")).keys() == {"Tasks"}
