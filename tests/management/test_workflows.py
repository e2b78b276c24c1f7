"""`manage.py taskqueue workflows …`: what people see of workflows, and do to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from taskqueue import chain, chord
from taskqueue.models import Audit, Lease, Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from tests.management.schedule_steps import exit_code_of
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.rest_workflows import BROKEN, deliver, fragile, only_one, unlucky
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish
from tests.workflows.test_running import parent

pytestmark = pytest.mark.django_db
SECRET = "correct-horse-battery-staple"


def failed() -> WorkflowRun:
    return finish(chord([fail.s("no"), fail.s("never")], echo.s()).enqueue())


def ids(*flags: object) -> list[str]:
    return [each["id"] for each in run_json("workflows", "list", *flags)]


def test_the_list_shows_how_far_each_is() -> None:
    done, broken = finish(deliver.enqueue("monday")), failed()
    waiting = deliver.enqueue("tuesday")
    waiting.pause()
    head, *lines = run("workflows").splitlines()
    assert head.split()[:5] == ["id", "name", "status", "members", "failures"]
    assert [line.split()[0] for line in lines] == [str(each.id) for each in (waiting, broken, done)]
    assert "running, paused" in lines[0]
    assert " 0/2 " in lines[0]
    assert " 3/3 " in lines[1]
    assert " 2/2 " in lines[2]
    assert run_json("workflows") == run_json("workflows", "list")


def test_each_flag_of_the_list_narrows_it() -> None:
    done, broken = finish(deliver.enqueue("monday")), failed()
    nested = finish(parent.enqueue(0))
    child = Workflow.objects.exclude(parent_step_id=None).get()
    keyed = deliver.using(unique_key="k").enqueue("tuesday")
    keyed.pause()
    every = [str(each.id) for each in (keyed, nested, broken, done)]
    assert ids() == every
    assert ids("--status", "failed") == [str(broken.id)]
    assert ids("--status", "failed", "--status", "running") == [str(keyed.id), str(broken.id)]
    assert ids("--name", deliver.name) == [str(keyed.id), str(done.id)]
    assert ids("--name", "tests.sample.*") == [str(keyed.id), str(done.id)]
    assert ids("--unique-key", "k") == ids("--paused") == [str(keyed.id)]
    assert ids("--not-paused") == []
    assert ids("--parent", nested.id) == ids("--id", child.id) == [str(child.id)]
    assert ids("--after", "1h") == every
    assert ids("--before", "1h") == ids("--schedule", "none") == []


def test_the_list_goes_on_from_a_cursor() -> None:
    runs = [deliver.enqueue(str(number)) for number in range(3)]
    out, err = StringIO(), StringIO()
    call_command(
        "taskqueue", "workflows", "list", "--limit", "2", stdout=out, stderr=err, no_color=True
    )
    assert err.getvalue().strip() == f"More workflows match: --cursor {runs[1].id}"
    first = run_json("workflows", "list", "--limit", "2", "--cursor", "")
    assert [each["id"] for each in first["workflows"]] == [str(runs[2].id), str(runs[1].id)]
    second = run_json("workflows", "list", "--limit", "2", "--cursor", first["next"])
    assert [each["id"] for each in second["workflows"]] == [str(runs[0].id)]
    assert second["next"] is None


def test_one_is_shown_with_its_steps_and_audit_and_without_secrets() -> None:
    flow = deliver.enqueue("monday", token=SECRET)
    flow.pause("wait", by="ann")
    text = run("workflows", "show", flow.id)
    assert SECRET not in text
    for words in ("[redacted]", "pack", "report", "waiting", "ann", "wait", "0/1"):
        assert words in text
    told = run_json("workflows", "show", flow.id)
    assert [step["name"] for step in told["steps"]] == ["pack", "report"]
    assert [entry["verb"] for entry in told["audit"]] == ["pause"]
    assert "ValueError: no" in run("workflows", "show", failed().id)


def test_arguments_of_an_unknown_workflow_stay_hidden() -> None:
    flow = deliver.enqueue("monday", token=SECRET)
    Workflow.objects.update(name="gone", context={"token": SECRET})
    text = run("workflows", "show", flow.id)
    assert SECRET not in text
    assert "hidden: no workflow of this name is known here" in text


def test_a_graph_is_printed_in_each_format() -> None:
    flow = deliver.enqueue("monday")
    assert run("workflows", "graph", flow.id, "--format", "svg").startswith("<svg")
    assert "flowchart" in run("workflows", "graph", flow.id, "--format", "mermaid")
    assert run("workflows", "graph", flow.id) == run(
        "workflows", "graph", flow.id, "--format", "mermaid"
    )
    drawn = run_json("workflows", "graph", flow.id)
    assert [node["name"] for node in drawn["nodes"]] == ["pack", "report"]


def test_a_workflow_is_enqueued_by_its_name_and_audited() -> None:
    kwargs = json.dumps({"day": "monday", "token": SECRET})
    told = run_json(
        "workflows", "enqueue", deliver.name, "--kwargs", kwargs, "--unique-key", "k",
        "--deadline", "2h", "--by", "ann", "--reason", "asked for",
    )  # fmt: skip
    row = Workflow.objects.get()
    assert (told["id"], told["created"], row.unique_key) == (str(row.id), True, "k")
    assert row.deadline_at is not None
    assert row.deadline_at - row.created_at == timedelta(hours=2)
    entry = Audit.objects.get()
    assert (entry.noun, entry.verb, entry.subject, entry.actor, entry.reason) == (
        "workflow", "enqueue", str(row.id), "ann", "asked for",
    )  # fmt: skip
    assert "this workflow holds the unique key" in run(
        "workflows", "enqueue", deliver.name, "--args", '["monday"]', "--unique-key", "k"
    )
    assert Workflow.objects.count() == 1


def test_a_wait_tells_how_it_ended_or_that_it_has_not() -> None:
    flow = only_one.enqueue()
    code, said = refused("workflows", "enqueue", only_one.name, "--wait", "0.1s")
    assert (code, said) == (1, f"Workflow {flow.id} is running: it has not finished in time.")
    assert Workflow.objects.count() == 1


def test_verbs_are_done_to_each_and_refusals_are_named() -> None:
    one, other = deliver.enqueue("monday"), deliver.enqueue("tuesday")
    assert run("workflows", "pause", one.id, other.id, "--by", "ann").splitlines() == [
        f"Workflow {each.id} paused; running tasks continue." for each in (one, other)
    ]
    assert Workflow.objects.filter(paused_at__isnull=False).count() == 2
    run("workflows", "resume", one.id)
    assert refused("workflows", "resume", one.id) == (1, f"Workflow {one.id} is not paused.")
    code, said = refused("workflows", "delete", one.id)
    assert (code, "cancel it before you delete it" in said) == (1, True)
    run("workflows", "cancel", one.id, "--reason", "enough")
    assert finish(one).status == "cancelled"
    out = StringIO()
    with pytest.raises(Exception, match="1 was refused"):
        call_command("taskqueue", "workflows", "cancel", str(one.id), str(other.id), stdout=out)
    first, second = out.getvalue().splitlines()
    assert first == f"{one.id}  Workflow {one.id} is cancelled."
    assert second == f"Workflow {other.id} is asked to stop."
    told = run_json("workflows", "delete", one.id)
    assert told["workflows"] == [{"id": str(one.id), "done": True, "gone": True}]
    assert not Workflow.objects.filter(id=one.id).exists()


@pytest.fixture
def broken() -> Iterator[set[str]]:
    BROKEN.add("load")
    yield BROKEN
    BROKEN.clear()


def test_failed_workflows_are_retried(broken: set[str]) -> None:
    flow, whole = finish(fragile.enqueue()), finish(deliver.enqueue("monday"))
    code, said = refused("workflows", "retry", whole.id)
    assert (code, "is succeeded" in said) == (1, True)
    broken.clear()
    told = run("workflows", "retry", flow.id, "--reason", "mended", "--by", "ann")
    assert told == f"Workflow {flow.id} runs again.\n"
    assert finish(flow).status == "succeeded"
    assert Lease.objects.filter(task__name__endswith="mendable").count() == 3
    run("workflows", "retry", flow.id, "--from-step", "load")
    assert finish(flow).status == "succeeded"
    assert Lease.objects.filter(task__name__endswith="mendable").count() == 5
    entries = Audit.objects.filter(subject=str(flow.id), verb="retry").order_by("id")
    assert list(entries.values_list("actor", "reason", "detail")) == [
        ("ann", "mended", ""), (entries[1].actor, "", "from step load"),
    ]  # fmt: skip


def test_a_failed_step_is_resolved(broken: set[str]) -> None:
    flow = finish(fragile.enqueue())
    code, said = refused("workflows", "resolve", flow.id, "--step", "laod", "--value", "1")
    assert (code, "Did you mean 'load'" in said) == (1, True)
    run("workflows", "resolve", flow.id, "--step", "load", "--value", '{"rows": 0}')
    assert finish(flow).status == "succeeded"
    assert Lease.objects.count() == 2


def test_a_failed_task_of_a_step_is_retried(broken: set[str]) -> None:
    flow = finish(fragile.enqueue())
    broken.clear()
    run("retry", Task.objects.get(status="failed").id)
    assert finish(flow).status == "succeeded"


def test_cancelling_a_workflow_asks_its_running_tasks_to_stop() -> None:
    flow = deliver.enqueue("monday")
    now = timezone.now()
    task = Task.objects.filter(step__workflow=flow.id, status="ready")[0]
    Task.objects.filter(id=task.id).update(
        status="running", attempt=1, running_leases=1, open_slots=0
    )
    lease = Lease.objects.create(
        task=task, attempt=1, worker_id="w1", claimed_at=now, expires_at=now + timedelta(minutes=1)
    )
    run("workflows", "cancel", flow.id)
    lease.refresh_from_db()
    assert lease.stop_requested_at is not None
    assert get_workflow(flow.id).status == "stopping"


REFUSED: list[tuple[list[Any], int, str]] = [
    (["dance"], 2, "invalid choice"),
    (["show"], 2, "required"),
    (["show", "x"], 1, "There is no workflow x."),
    (["graph", "0197a0e0-0000-7000-8000-000000000000"], 1, "There is no workflow"),
    (["graph", "x", "--format", "png"], 2, "invalid choice"),
    (["cancel"], 2, "required"),
    (["cancel", "x"], 1, "There is no workflow x."),
    (["retry", "x", "--from-step", "a"], 1, "There is no workflow x."),
    (["resolve", "x", "--step", "a"], 2, "required"),
    (["resolve", "x", "--step", "a", "--value", "nothing"], 2, "not JSON"),
    (["list", "--status", "done"], 2, "invalid choice"),
    (["list", "--id", "x"], 2, "not the beginning of an id"),
    (["list", "--name", ""], 2, "is empty"),
    (["list", "--parent", "x"], 2, "not the id of a workflow"),
    (["list", "--limit", "0"], 2, "whole number"),
    (["enqueue", f"{deliver.name}y"], 1, f"Did you mean '{deliver.name}'?"),
    (["enqueue", deliver.name], 2, "cannot be called"),
    (["enqueue", deliver.name, "--kwargs", '{"dya": 1}'], 2, "cannot be called"),
    (["enqueue", deliver.name, "--kwargs", "[]"], 2, "must be a JSON object"),
    (["enqueue", unlucky.name, "--args", '["x"]'], 1, "cannot be built of these arguments"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED)
def test_an_invalid_command_on_workflows_is_refused_in_one_line(
    arguments: list[Any], code: int, words: str
) -> None:
    _, said = refused("workflows", *arguments)
    assert (words in said, "\n" in said) == (True, False), said
    assert exit_code_of("workflows", *arguments) == code
    assert not Step.objects.exists()
    assert not Audit.objects.exists()


def test_a_chain_of_the_project_is_listed_under_its_own_name() -> None:
    flow = chain(add.s(1, 2), add.s(3)).enqueue()
    [told] = run_json("workflows", "list", "--name", flow.name)
    assert (told["id"], told["total_steps"]) == (str(flow.id), 2)
