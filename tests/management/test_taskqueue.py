"""`manage.py taskqueue …`: what it prints, what it does, and how it exits."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import project_connection
from taskqueue.management.commands.taskqueue import Command
from taskqueue.models import Audit, Lease, Queue, Task, Worker
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.task_history import MOST_RETRIES
from taskqueue.results import get_result
from tests.engine.steps import claim, claim_one, end, future, lease_of, task_of
from tests.engine.test_workers import registered, row
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db
DEEP = "[" * 200_000


def run(*arguments: object) -> str:
    """Return the output of the command."""
    out = StringIO()
    call_command("taskqueue", *map(str, arguments), stdout=out, no_color=True)
    return out.getvalue()


def run_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--format", "json"))


def refused(*arguments: object) -> tuple[int, str]:
    """The exit code and the message of a command that is refused."""
    with pytest.raises(CommandError) as refusal:
        run(*arguments)
    return refusal.value.returncode, str(refusal.value)


def failed(*args: Any) -> Any:
    result = add.enqueue(*args)
    end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="why", traceback="a\nb")
    return result


# One task


def test_a_task_is_cancelled_with_who_and_why() -> None:
    result = noop.enqueue()
    output = run("cancel", result.id, "--reason", "not needed", "--by", "anna")
    assert output == f"{result.id}  cancel: cancelled\n"
    line = Audit.objects.get()
    assert (line.verb, line.actor, line.reason) == ("cancel", "anna", "not needed")


def test_who_is_the_user_of_the_system_unless_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ben")
    run("cancel", noop.enqueue().id)
    assert Audit.objects.get().actor == "ben"


def test_a_running_task_is_asked_to_stop() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    assert run_json("stop", result.id, "--by", "anna", "--reason", "enough") == {
        "verb": "stop",
        "tasks": [{"id": str(result.id), "done": True, "status": "running"}],
    }
    lease = lease_of(claimed)
    assert (lease.stop_requested_by, lease.stop_reason) == ("anna", "enough")


def test_a_task_that_waits_is_stopped_before_it_runs() -> None:
    result = noop.using(run_after=60).enqueue()
    assert run("stop", result.id) == f"{result.id}  stop: cancelled\n"


def test_a_refused_verb_or_a_missing_task_exits_with_1() -> None:
    ended = noop.enqueue()
    run("cancel", ended.id)
    assert refused("stop", ended.id)[0] == 1
    result = noop.enqueue()
    assert refused("retry", result.id)[0] == 1
    assert refused("run-now", result.id)[0] == 1
    missing = uuid4()
    assert refused("cancel", missing) == (1, f"There is no task {missing}.")
    assert refused("show", missing)[0] == 1
    assert refused("cancel", "nonsense") == (1, "'nonsense' is not the id of a task: write a UUID.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["cancel"],
        ["cancel", "--queue", "mail"],
        ["cancel", str(uuid4()), "--queue", "mail"],
        ["cancel", str(uuid4()), "--dry-run"],
        ["cancel", "--status", "runing", "--yes"],
        ["cancel", "--all", "--queue", "mail", "--yes"],
        ["reschedule", str(uuid4())],
        ["reschedule", str(uuid4()), "--in", "soon"],
        ["reschedule", str(uuid4()), "--at", "tomorrow"],
        ["retry", "--queue", "mail", "--args", "[]", "--yes"],
        ["retry", str(uuid4()), "--args", "{}"],
        ["retry", str(uuid4()), "--kwargs", "nonsense"],
        ["update", str(uuid4()), "--set", "priority"],
        ["update", str(uuid4()), "--set", "prority=5"],
        ["stop"],
        ["stop", str(uuid4()), "--kill"],
        ["stop", str(uuid4()), "--worker", "w1"],
        ["stop", "--all-workers", "--host", "here"],
        ["stop", "--worker", "w1", "--quiet", "--kill"],
        ["pause", "two words"],
        ["pause", "mail", "--for", "0"],
        ["list", "--limit", "0"],
        ["list", "--after", "900000000d"],
        ["list", "--before", "0001-01-01T00:00+05:00"],
        ["reschedule", str(uuid4()), "--at", "9999-12-31T23:00-05:00"],
        ["reschedule", str(uuid4()), "--in", "900000000d"],
        ["retry", str(uuid4()), "--args", DEEP],
        ["update", str(uuid4()), "--set", f"priority={DEEP}"],
        ["list", "--limit", "1001"],
    ],
)
def test_invalid_arguments_exit_with_2_and_change_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    noop.using(queue_name="mail").enqueue()
    assert exit_code(arguments) == 2
    assert Task.objects.get().status == "ready"
    assert not Audit.objects.exists()


def exit_code(arguments: list[str]) -> object:
    """How the process would end: what `ManagementUtility` does, without closing connections."""
    command = Command()
    command._called_from_command_line = True
    try:
        flags = command.create_parser("manage.py", "taskqueue").parse_args(arguments)
        command.execute(**vars(flags))
    except CommandError as error:
        return error.returncode
    except SystemExit as end_of_process:
        return end_of_process.code
    return 0


def test_each_of_several_ids_is_tried_and_refusals_are_reported() -> None:
    one, two = noop.enqueue(), noop.enqueue()
    end(claim(1)[0], OutcomeKind.SUCCEEDED)
    out = StringIO()
    with pytest.raises(CommandError, match="1 was refused") as refusal:
        call_command("taskqueue", "cancel", str(one.id), str(two.id), stdout=out)
    assert refusal.value.returncode == 1
    assert f"{one.id}  cancel: Task {one.id} is succeeded" in out.getvalue()
    assert f"{two.id}  cancel: cancelled" in out.getvalue()


def test_a_failed_task_is_retried_also_with_other_arguments() -> None:
    result = failed(1, 2)
    new = run_json("retry", result.id, "--args", "[5]", "--kwargs", '{"b": 6}')["tasks"][0]
    assert (get_result(new["new_id"]).args, get_result(new["new_id"]).kwargs) == ([5], {"b": 6})
    assert task_of(result).status == "failed"
    assert refused("retry", result.id, "--args", "[1, 2, 3]")[0] == 1
    assert refused("retry", result.id, "--args", "[NaN]")[0] == 2
    run("retry", result.id)
    assert task_of(result).status == "ready"
    assert refused("retry", result.id)[0] == 1


def test_time_and_terms_are_changed() -> None:
    result = noop.using(run_after=3600).enqueue()
    run("reschedule", result.id, "--in", "2h")
    assert task_of(result).run_after > future(timedelta(minutes=110))
    run("reschedule", result.id, "--at", "2100-01-01T12:00+00:00")
    assert task_of(result).run_after.year == 2100
    run("update", result.id, "--set", "priority=5", "--set", "queue_name=mail")
    run("update", result.id, "--set", 'worker_names=["w1"]', "--set", "lease_duration=60")
    task = task_of(result)
    assert (task.priority, task.queue_name, task.worker_names) == (5, "mail", ["w1"])
    assert run("update", result.id, "--set", "priority=5").endswith("nothing to change\n")
    run("run-now", result.id)
    assert task_of(result).status == "ready"


# Many tasks


def test_many_are_counted_first_and_done_when_that_is_said() -> None:
    noop.using(queue_name="mail").enqueue_many([((), {})] * 5)
    noop.enqueue()
    code, message = refused("cancel", "--queue", "mail")
    assert code == 2
    assert "Tasks that match: 5; that allow it: 5. Nothing was changed" in message
    assert run("cancel", "--queue", "mail", "--dry-run") == (
        "cancel: 5 matched, 5 would be done, 0 refused\n"
    )
    assert Task.objects.filter(status="cancelled").count() == 0
    assert run("cancel", "--queue", "mail", "--yes", "--by", "anna") == (
        "cancel: 5 matched, 5 done, 0 refused\n"
    )
    assert Task.objects.filter(status="cancelled").count() == 5
    assert Audit.objects.filter(actor="anna", verb="cancel").count() == 5
    assert run_json("retry", "--all", "--yes") == {
        "verb": "retry",
        "dry_run": False,
        "matched": 6,
        "done": 5,
        "refused": 1,
    }


def test_tasks_are_chosen_by_their_age() -> None:
    noop.enqueue()
    old = noop.enqueue()
    Task.objects.filter(id=old.id).update(enqueued_at=timezone.now() - timedelta(hours=3))
    assert run_json("cancel", "--before", "2h", "--dry-run")["matched"] == 1
    assert run_json("cancel", "--after", "2h", "--dry-run")["matched"] == 1
    assert run_json("cancel", "--before", "2100-01-01", "--dry-run")["matched"] == 2


# Queues


def test_a_queue_is_paused_seen_and_resumed() -> None:
    noop.using(queue_name="mail").enqueue()
    run("pause", "mail", "--for", "10m", "--reason", "the relay is down", "--by", "anna")
    assert claim(queue="mail") == []
    [line] = run_json("queues")
    assert (line["name"], line["waiting"], line["is_paused"], line["paused_by"]) == (
        "mail",
        1,
        True,
        "anna",
    )
    assert "the relay is down" in run("queues")
    assert run("resume", "mail") == "Queue mail resumed.\n"
    assert run_json("queues")[0]["is_paused"] is False
    assert refused("resume", "mail") == (1, "Queue 'mail' is not paused.")
    run("pause", "mail", "--until", "2100-01-01T12:00+00:00")
    assert Queue.objects.get().paused_until.year == 2100


# Workers


@pytest.mark.parametrize(("flag", "request_"), [([], "stop"), (["--quiet"], "quiet")])
def test_workers_are_asked(flag: list[str], request_: str) -> None:
    registered("a", host="here", queues={"mail": 1})
    registered("b", host="there", queues={})
    assert run("stop", "--worker", "a", *flag, "--by", "anna") == f"a  asked: {request_}\n"
    assert (row("a").request, row("a").requested_by, row("b").request) == (request_, "anna", "")
    assert run_json("stop", "--queue", "mail", *flag)["workers"] == ["a", "b"]
    assert run_json("stop", "--all-workers", "--kill")["workers"] == ["a", "b"]
    assert set(Worker.objects.values_list("request", flat=True)) == {"kill"}


def test_a_worker_is_said_to_be_asked_for_what_it_really_is() -> None:
    registered("a")
    registered("b")
    run("stop", "--worker", "a")
    assert run("stop", "--all-workers", "--quiet") == "a  asked: stop\nb  asked: quiet\n"
    asked = run_json("stop", "--all-workers", "--quiet")
    assert (asked["request"], asked["asked"]) == ("quiet", {"a": "stop", "b": "quiet"})


def test_the_help_of_quiet_tells_how_to_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("stop", "--help")
    assert " ".join(capsys.readouterr().out.split()).count("until `resume --worker NAME`") == 1


def test_quiet_workers_are_resumed() -> None:
    registered("a", host="here", queues={"mail": 1})
    registered("b", host="there", queues={})
    registered("c")
    run("stop", "--all-workers", "--quiet")
    assert run("resume", "--worker", "a", "--by", "anna") == "a  asked to resume\n"
    assert (row("a").request, row("b").request) == ("", "quiet")
    assert Audit.objects.get(noun="worker", verb="resume").actor == "anna"
    run("stop", "--worker", "a", "--quiet")
    run("stop", "--worker", "c")
    assert run_json("resume", "--queue", "mail") == {"workers": ["a", "b"]}
    run("stop", "--worker", "a", "--quiet")
    assert run_json("resume", "--all-workers") == {"workers": ["a"]}
    assert row("c").request == "stop"
    assert refused("resume", "--host", "here") == (
        1, "None of these workers is quiet; one that is to stop stops."
    )  # fmt: skip
    assert refused("resume", "--worker", "nobody")[0] == 1
    for arguments in (["resume"], ["resume", "mail", "--worker", "a"],
                      ["resume", "--all-workers", "--host", "here"]):  # fmt: skip
        assert refused(*arguments)[0] == 2


def test_a_worker_that_is_not_there_exits_with_1() -> None:
    registered("mailer-1")
    code, message = refused("stop", "--worker", "mailer-2")
    assert (code, message) == (
        1,
        "No worker is named 'mailer-2'. Did you mean 'mailer-1'?",
    )
    assert refused("stop", "--host", "nowhere") == (1, "No worker matches.")


def test_workers_are_listed_with_what_was_asked_of_them() -> None:
    registered("a", queues={})
    registered("b")
    Worker.objects.filter(name="b").update(status="stopped")
    control.stop_worker("a", by="anna", reason="a new release")
    assert "b" not in [line["name"] for line in run_json("workers")]
    lines = {line["name"]: line for line in run_json("workers", "--all")}
    assert (lines["a"]["state"], lines["a"]["is_alive"], lines["b"]["is_alive"]) == (
        "active",
        True,
        False,
    )
    assert (lines["a"]["request"], lines["a"]["requested_by"], lines["a"]["request_reason"]) == (
        "stop",
        "anna",
        "a new release",
    )
    assert (lines["a"]["queues"], lines["b"]["queues"]) == ([], ["mail"])
    header, line = run("workers").splitlines()
    assert header.split()[:5] == ["name", "state", "host", "pid", "queues"]
    assert (line.split()[:2], line.split()[4]) == (["a", "active"], "all")


# Looking


def test_a_task_is_shown_with_its_attempts_and_what_was_done_to_it() -> None:
    result = failed(1, 2)
    result.retry("again", by="anna")
    claimed = claim_one()
    result.request_stop("enough", by="ben")
    shown = run_json("show", result.id)
    assert (shown["status"], shown["args"], shown["attempts"]) == ("running", [1, 2], 2)
    first, second = shown["latest_attempts"]
    assert (first["error_class"], first["error_message"], first["traceback"]) == (
        "E",
        "why",
        "a\nb",
    )
    assert (second["stop_requested_by"], second["stop_reason"]) == ("ben", "enough")
    assert second["stop_requested_at"] == json_form(lease_of(claimed).stop_requested_at)
    assert second["stop_seen_at"] is None
    assert [(act["verb"], act["actor"], act["before"]) for act in shown["audit"]] == [
        ("retry", "anna", "failed"),
        ("stop", "ben", "running"),
    ]
    text = run("show", result.id)
    assert "attempt 2" in text
    assert re.search(r"stop_requested_by +ben\n", text)
    assert "traceback:\n    a\n    b\n" in text


def test_who_retried_it_with_other_arguments_can_be_followed_both_ways() -> None:
    old = failed(1)
    new = old.retry(args=[2])
    assert run_json("show", old.id)["retries"] == [str(new.id)]
    assert run_json("show", new.id)["retry_of"] == str(old.id)


def test_every_task_made_from_one_is_listed() -> None:
    old = failed(1)
    retries = [str(old.retry(args=[number]).id) for number in range(MOST_RETRIES + 2)]
    assert run_json("show", old.id)["retries"] == retries[::-1]
    text = run("show", old.id)
    assert all(retry in text for retry in retries)


def test_arguments_that_may_be_secret_are_not_shown() -> None:
    result = add.enqueue(1234567)
    Task.objects.update(name="shop.tasks.unknown")
    assert "1234567" not in run("show", result.id) + json.dumps(run_json("show", result.id))


def test_text_from_users_cannot_steer_the_terminal() -> None:
    result = noop.enqueue()
    result.cancel("\x1b[2Jgone\nfor good")
    for text in (run("show", result.id), run("list")):
        assert "\x1b" not in text
    assert "[2Jgone" in run("show", result.id)


def test_tasks_are_listed_newest_first_and_no_more_than_asked() -> None:
    first = noop.enqueue()
    second = add.using(queue_name="mail", priority=3).enqueue(1)
    assert [line["id"] for line in run_json("list")] == [str(second.id), str(first.id)]
    assert [line["id"] for line in run_json("list", "--limit", "1")] == [str(second.id)]
    assert [line["id"] for line in run_json("list", "--queue", "default")] == [str(first.id)]
    assert run_json("list", "--status", "running", "--status", "failed") == []
    header, line, _ = run("list").splitlines()
    assert header.split()[:3] == ["id", "name", "status"]
    assert line.split()[:3] == [str(second.id), add.name, "ready"]


def test_a_list_reads_no_arguments(django_assert_max_num_queries: Any) -> None:
    noop.enqueue_many([((), {})] * 20)
    with django_assert_max_num_queries(1) as captured:
        run("list")
    assert '"args"' not in captured.captured_queries[0]["sql"]
    assert Lease.objects.using(project_connection().alias).count() == 0
