"""Failed steps are told with the retry of their workflow, because theirs is refused."""

from __future__ import annotations

import pytest
from django.test import Client

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.monitoring.notices import Notice, notices
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


def test_only_those_who_may_view_workflows_are_led_to_them(log_in_as: LogIn) -> None:
    finish(inside.enqueue())
    assert shown(log_in_as("viewer", "view_task")).keys() == {"Tasks"}
