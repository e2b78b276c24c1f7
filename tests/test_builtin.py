"""Built-in tasks do what the settings allow, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.test import override_settings

from taskqueue import Stopped
from taskqueue.builtin import TASKS, declare
from taskqueue.declarations.definition import registry
from taskqueue.models import TaskLog
from taskqueue.testing import run_due
from taskqueue.webhooks import client
from taskqueue.webhooks.client import Answer, NoAnswer, Refused
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db
PYTHON = sys.executable
ALLOWED = {
    "BUILTIN_TASKS": {
        "command": ["check", ["taskqueue", "list", "**"]],
        "http": ["https://api.example.org/jobs/*"],
        "program": [[PYTHON, "-c", "**"], ["/bin/echo", "a*"]],
    }
}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    registry.all()  # The modules of tasks are imported with the settings of the tests.
    with override_settings(TASKQUEUE=ALLOWED):
        declare()
        yield
    for _, options in TASKS.values():
        registry._definitions.pop(options["name"], None)


def outcome(name: str, *args: Any, **kwargs: Any) -> tuple[str, Any]:
    """How a call ends: its status, and its result or error."""
    result = registry.get(name).enqueue(*args, **kwargs)  # type: ignore[attr-defined]
    run_due()
    result.refresh()
    if result.status == "succeeded":
        return result.status, result.return_value
    return result.status, result.errors[-1].message


def test_none_is_declared_without_an_entry() -> None:
    for _, options in TASKS.values():
        registry._definitions.pop(options["name"], None)
    with override_settings(TASKQUEUE={"BUILTIN_TASKS": {"program": [["/bin/true"]]}}):
        declare()
    names = {definition.name for definition in registry.all()}
    assert {name for name in names if name.startswith("builtin.")} == {"builtin.program"}


def test_a_command_runs_and_its_output_is_the_result() -> None:
    status, output = outcome("builtin.command", "taskqueue", "list", "--format", "json")
    assert status == "succeeded"
    assert "builtin.command" in output


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("builtin.command", ["migrate"]),
        ("builtin.command", ["check", "--deploy"]),
        ("builtin.command", ["taskqueue", "delete", "--all", "--yes"]),
        ("builtin.command", []),
        ("builtin.program", ["/bin/sh", "-c", "true"]),
        ("builtin.program", ["/bin/echo", "b"]),
        ("builtin.program", ["/bin/echo", "a", "a"]),
        ("builtin.program", ["/bin/echo", "a/../b"]),
        ("builtin.program", ["/bin/echo", "a=.."]),
        ("builtin.http", ["https://api.example.org/other"]),
        ("builtin.http", ["https://api.example.org.evil.example/jobs/1"]),
        ("builtin.http", ["http://api.example.org/jobs/1"]),
        ("builtin.http", ["https://api.example.org/jobs/../admin"]),
        ("builtin.http", ["https://api.example.org/jobs/%2e%2E/admin"]),
    ],
)
def test_a_builtin_task_that_no_entry_allows_fails_at_once(name: str, args: list[str]) -> None:
    status, said = outcome(name, *args)
    assert status == "failed"
    assert "No entry of TASKQUEUE['BUILTIN_TASKS']" in said


def test_a_program_runs_without_a_shell_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "very secret")
    assert outcome("builtin.program", "/bin/echo", "a; echo $HOME") == (
        "succeeded", "a; echo $HOME\n",
    )  # fmt: skip
    script = "import os; print(sorted(os.environ)); print('second'); print('x' * 40000)"
    status, output = outcome("builtin.program", PYTHON, "-c", script)
    assert (status, len(output)) == ("succeeded", 16 * 1024)
    lines = list(TaskLog.objects.order_by("id").values_list("message", flat=True))
    assert "DATABASE_PASSWORD" not in lines[1]
    assert lines[2] == "second"


def test_a_program_that_fails_is_a_failure_with_the_end_of_its_output() -> None:
    status, said = outcome("builtin.program", PYTHON, "-c", "print('why'); raise SystemExit(3)")
    assert status == "failed"
    assert f"{PYTHON} ended with exit code 3: why" in said


def test_a_program_that_must_stop_is_killed_with_its_children() -> None:
    class Asked:
        lines: ClassVar[list[str]] = []

        def check(self) -> None:
            if self.lines:
                raise Stopped("of no use")

        def log(self, message: str) -> None:
            self.lines.append(message)

    script = (
        "import subprocess, sys, time; "
        "print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    )
    asked: Any = Asked()
    with pytest.raises(Stopped):
        TASKS["program"][0](asked, PYTHON, "-c", script)
    wait_until(lambda: not _lives(int(Asked.lines[0])), 60)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_request_goes_through_the_guarded_client(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    answers: list[Any] = [
        Answer(status=200, body=b"done", retry_after=""),
        Answer(status=404, body=b"", retry_after=""),
        Answer(status=503, body=b"", retry_after=""),
        NoAnswer("No answer came in time."),
        Refused("The address is private."),
    ]

    def send(method: str, url: str, body: bytes, headers: Any, **options: Any) -> Answer:
        sent.append((method, url, body, headers))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(client, "send", send)
    url = "https://api.example.org/jobs/1"
    assert outcome("builtin.http", url, "POST", {"a": 1}) == (
        "succeeded", {"status": 200, "body": "done"},
    )  # fmt: skip
    assert sent == [("POST", url, b'{"a": 1}', {"Content-Type": "application/json"})]
    for said in ("answered with 404", "answered with 503", "No answer came", "is private"):
        status, message = outcome("builtin.http", url)
        assert status == "failed"
        assert said in message


def test_a_request_may_not_say_where_it_goes_by_a_header() -> None:
    url = "https://api.example.org/jobs/1"
    status, said = outcome("builtin.http", url, headers={"Host": "internal"})
    assert (status, said) == ("failed", "A request may not set the header Host.")


def test_secrets_of_a_request_are_redacted_and_none_is_open_to_rest() -> None:
    assert registry.get("builtin.http").options.sensitive == {"headers", "body"}
    assert not any(registry.get(options["name"]).options.api for _, options in TASKS.values())
