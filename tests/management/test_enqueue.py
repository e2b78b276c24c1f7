"""`manage.py taskqueue enqueue`: by name, as code does; and `prune`."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import pruning
from taskqueue.models import Audit, Task, TaskLog
from tests.engine.steps import claim_one, end, past
from tests.management.test_taskqueue import exit_code, refused, run, run_json
from tests.monitoring.rows import HOUR, make_task, make_worker
from tests.sample.rest_workflows import deliver
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db


def test_a_task_is_enqueued_by_its_name_and_audited() -> None:
    output = run("enqueue", add.name, "--args", "[1, 2]", "--by", "anna", "--reason", "a test")
    task = Task.objects.get()
    assert output == f"{task.id}  enqueued: ready\n"
    assert (task.name, task.args, task.kwargs) == (add.name, [1, 2], {})
    line = Audit.objects.get()
    assert (line.verb, line.actor, line.reason) == ("enqueue", "anna", "a test")


def test_options_are_taken_as_flags_and_by_name() -> None:
    run(
        "enqueue", noop.name, "--queue", "mail", "--priority", "5", "--in", "10m",
        "--set", "max_attempts=7", "--set", 'metadata={"a": 1}',
    )  # fmt: skip
    task = Task.objects.get()
    assert (task.queue_name, task.priority, task.status) == ("mail", 5, "scheduled")
    assert (task.max_attempts, task.metadata) == (7, {"a": 1})
    assert timedelta(minutes=9) < task.run_after - timezone.now() < timedelta(minutes=11)


@pytest.mark.parametrize("command", [["enqueue", add.name], ["workflows", "enqueue", deliver.name]])
def test_arguments_behind_the_name_are_told_how_they_are_given(command: list[str]) -> None:
    code, said = refused(*command, "1", "the 2nd")
    assert (code, said) == (2, """Give arguments as JSON: --args '[1, "the 2nd"]'""")
    assert not Task.objects.exists()


@pytest.mark.parametrize("name", ["high", "HIGH"])
def test_a_priority_has_a_name_in_either_case(name: str) -> None:
    run("enqueue", noop.name, "--priority", name)
    noop.using(priority=name).enqueue()
    assert list(Task.objects.values_list("priority", flat=True)) == [50, 50]


def test_a_key_that_another_holds_makes_no_second_task() -> None:
    first = run_json("enqueue", noop.name, "--unique-key", "k")
    second = run_json("enqueue", noop.name, "--unique-key", "k")
    assert (first["created"], second["created"], second["id"]) == (True, False, first["id"])
    assert "nothing enqueued: this task holds the unique key" in run(
        "enqueue", noop.name, "--unique-key", "k"
    )
    code, said = refused(
        "enqueue", noop.name, "--unique-key", "k", "--set", "on_duplicate=raise"
    )  # fmt: skip
    assert (code, "k" in said) == (1, True)


def test_a_key_may_be_made_of_the_arguments_and_shared_with_other_definitions() -> None:
    named = ["--set", 'unique_key=["a"]', "--set", "unique_scope=sums"]
    first = run_json("enqueue", add.name, "--args", "[1, 2]", *named)
    again = run_json("enqueue", add.name, "--kwargs", '{"b": 3, "a": 1}', *named)
    other = run_json("enqueue", echo.name, "--kwargs", '{"a": 1}', *named)
    assert [each["id"] for each in (again, other)] == [first["id"]] * 2
    assert (other["created"], other["name"]) == (False, add.name)
    assert run_json("enqueue", add.name, "--args", "[1]", "--set", "unique_key=true")["created"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [add.name, "--args", "{}"],
        [add.name, "--args", "[NaN]"],
        [add.name, "--kwargs", '{"a": 1, "a": 2}'],
        [add.name, "--args", "[1, 2, 3, 4]"],
        [add.name, "--kwargs", '{"colour": 1}'],
        [add.name, "--args", json.dumps(["\x00"])],
        [add.name, "--args", f"[{2**70}]"],
        [noop.name, "--priority", "500"],
        [noop.name, "--priority", "urgent"],
        [noop.name, "--priority", "\N{ARABIC-INDIC DIGIT FIVE}"],
        [noop.name, "--queue", "two words"],
        [noop.name, "--set", "colour=red"],
        [noop.name, "--set", "timeout=soon"],
        [noop.name, "--set", "priority=1", "--priority", "2"],
        [noop.name, "--unique-key", "k" * 256],
        [noop.name, "--at", "10000-01-01T00:00Z"],
        [noop.name, "--wait", "soon"],
    ],
)
def test_an_invalid_enqueue_exits_with_2_and_writes_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["enqueue", *arguments]) == 2
    assert not Task.objects.exists()


def test_a_name_that_is_not_known_suggests_another() -> None:
    code, said = refused("enqueue", noop.name + "e")
    assert (code, f"Did you mean '{noop.name}'?" in said) == (1, True)


def test_an_end_that_does_not_come_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = refused("enqueue", noop.name, "--wait", "0.05")
    assert (code, "is ready: it has not finished in time" in said) == (1, True)


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [(OutcomeKind.SUCCEEDED, 0, "succeeded"), (OutcomeKind.FAILED, 1, "failed with E: why not")],
)
def test_who_waits_learns_how_it_ended(
    kind: OutcomeKind, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ["enqueue", noop.name, "--unique-key", "k", "--set", "unique_for=kept"]
    run(*kept)
    end(claim_one(), kind, error_class="E" if code else "", error_message="why not")
    assert exit_code([*kept, "--wait", "5"]) == code
    assert f"{Task.objects.get().id}  {said}\n" in capsys.readouterr().out


# prune


def test_prune_deletes_what_is_past_its_time_and_says_so() -> None:
    old = make_task("succeeded", prune_after=past())
    TaskLog.objects.create(task=old, attempt=1, logged_at=past(), level=20, message="x")
    make_task("succeeded", prune_after=timezone.now() + HOUR)
    make_worker("gone", status="stopped", seen_at=past(timedelta(days=2)))
    Audit.objects.create(verb="old", subject="x", at=past(timedelta(days=400)))
    dry = run("prune", "--dry-run")
    assert dry == "prune: 1 tasks, 1 audit, 1 workers would be deleted\n"
    counted = run_json("prune", "--dry-run")
    assert (counted["dry_run"], counted["tasks"], counted["operations"]) == (True, 1, 0)
    assert run("prune", "--by", "anna") == "prune: 1 tasks, 1 audit, 1 workers\n"
    assert (Task.objects.count(), TaskLog.objects.count()) == (1, 0)
    line = Audit.objects.get()
    assert (line.verb, line.actor, line.detail) == (
        "prune", "anna", "1 tasks, 1 audit, 1 workers",
    )  # fmt: skip
    assert run("prune", "--dry-run") == "prune: nothing is past its retention\n"
    assert run("prune") == "prune: nothing is past its retention\n"
    assert Audit.objects.count() == 1
    assert run_json("prune") == {
        "tasks": 0, "occurrences": 0, "operations": 0, "idempotency_keys": 0, "audit": 0,
        "workers": 0, "workflows": 0, "rollups": 0, "alerts": 0, "deliveries": 0,
    }  # fmt: skip


def test_prune_goes_on_until_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    for _ in range(5):
        make_task("succeeded", prune_after=past())
    assert run_json("prune")["tasks"] == 5
