"""`manage.py taskqueue …` refuses meaningless input before anything is counted or done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Audit, Task
from tests.engine.steps import claim_one, end
from tests.management.test_health import add_worker
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            ["update", "--set", "bogus=5"],
            "'bogus' is not an option that can change",
        ),
        (["update", "--set", "priority=1000"], "priority must be"),
        (["update", "--set", "priority=1", "--set", "priority=2"], "--set sets priority twice."),
    ],
)
@pytest.mark.parametrize("how", ["--dry-run", "--yes", None])
def test_terms_that_no_task_can_have(command: list[str], reason: str, how: str | None) -> None:
    noop.enqueue()
    code, said = refused(*command, "--all", *([how] if how else []))
    assert (code, reason in said, "fit, of which" in said) == (2, True, False), said


def test_an_option_is_set_once() -> None:
    code, said = refused("enqueue", noop.name, "--set", "metadata={}", "--set", 'metadata={"a":1}')
    assert (code, said) == (2, "--set sets metadata twice. Set each option once.")
    assert not Task.objects.exists()


def test_durations_and_moments_are_typed_as_they_are_by_flags() -> None:
    run("enqueue", noop.name, "--set", "deadline=5m", "--set", "retention=2d")
    task = Task.objects.get()
    assert task.deadline_at is not None
    assert task.deadline_at - task.enqueued_at == timedelta(minutes=5)
    assert task.retention == timedelta(days=2)
    run("enqueue", noop.name, "--set", "run_after=2040-01-01T00:00+00:00")
    assert Task.objects.get(run_after__year=2040).status == "scheduled"
    run("update", task.id, "--set", "retention=1w", "--set", "timeout=300")
    task.refresh_from_db()
    assert task.retention == timedelta(weeks=1)
    assert refused("enqueue", noop.name, "--set", "timeout=soon")[0] == 2


@pytest.mark.parametrize("flag", ["--queue", "--name", "--worker", "--error", "--query"])
def test_an_empty_choice_does_not_choose_everything(flag: str) -> None:
    noop.enqueue()
    code, said = refused("cancel", flag, "", "--status", "ready", "--yes")
    assert (code, f"argument {flag}: is empty" in said) == (1, True), said
    assert Task.objects.get().status == "ready"


@pytest.mark.parametrize("flag", ["--worker", "--host", "--queue"])
def test_nor_does_one_of_workers(flag: str) -> None:
    add_worker()
    for command in (["health", flag, ""], ["stop", "--all-workers", flag, ""]):
        assert f"argument {flag}: is empty" in refused(*command)[1]


def test_messages_are_about_flags() -> None:
    task_id = noop.enqueue().id
    assert refused("cancel", "--all", "--status", "ready", "--yes") == (
        2, "--all chooses every task: omit it, or the other flags that choose tasks.",
    )  # fmt: skip
    assert refused("cancel", "--query", " ", "--yes")[1] == (
        "The query is empty: it chooses no tasks."
    )
    assert refused("cancel", task_id, "--all", "--yes")[1] == (
        "Give either ids, or flags that choose tasks, not both."
    )
    assert refused("cancel", "--yes")[1] == (
        "Give either ids, or flags that choose tasks, or --all for every task."
    )
    assert refused("stop", "--all-workers", "--worker", "paris")[1] == (
        "--all-workers chooses every worker: omit it, or the other flags."
    )


def test_tasks_are_duplicated() -> None:
    task_id = noop.using(queue_name="mail", priority=7).enqueue().id
    [done] = run_json("duplicate", task_id, "--by", "ada")["tasks"]
    assert Task.objects.get(id=done["new_id"]).queue_name == "mail"
    assert Audit.objects.filter(verb="duplicate", actor="ada").count() == 2
    assert run("duplicate", "--queue", "mail", "--dry-run") == (
        "duplicate: 2 matched, 2 would be done, 0 refused\n"
    )
    assert run("duplicate", "--all", "--yes") == "duplicate: 2 matched, 2 done, 0 refused\n"
    assert Task.objects.count() == 4


def test_finished_tasks_are_deleted() -> None:
    waits, ended = noop.using(run_after=timezone.now() + timedelta(1)).enqueue(), noop.enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="why", traceback="")
    code, said = refused("delete", waits.id)
    assert (code, "Only finished tasks can be deleted" in said) == (1, True)
    assert run("delete", "--all", "--dry-run") == (
        "delete: 2 matched, 1 would be done, 1 refused\n"
    )
    assert refused("delete", "--all")[0] == 2
    assert run("delete", ended.id, "--reason", "old") == f"{ended.id}  delete: done\n"
    assert list(Task.objects.values_list("id", flat=True)) == [waits.id]


@pytest.mark.parametrize(
    "command", [["list", "--form", "json"], ["alerts", "unsilence", "late", "--form", "json"]]
)
def test_a_flag_is_not_abbreviated(command: list[str]) -> None:
    assert "--form" in refused(*command)[1]
