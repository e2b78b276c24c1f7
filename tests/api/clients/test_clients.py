"""Clients in other languages: a script of Node's, and curl as docs/api.md has it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from taskqueue.models import Audit, Lease, Task
from tests.conftest import StartWorker, require_tool

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SCRIPT = Path(__file__).with_name("client.mjs")


@pytest.fixture
def root(live_server: Any) -> str:
    """Where the API is; `ann` may do everything there."""
    User.objects.create_superuser("ann", password="secret")
    return f"{live_server.url}/api/v1/"


def test_a_script_of_node_enqueues_waits_reads_logs_stops_and_retries(
    root: str, start_worker: StartWorker
) -> None:
    node = require_tool("node")
    start_worker("--pool", "thread")
    ran = subprocess.run(
        [node, SCRIPT, root, "ann", "secret"], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "created": [201, 201, True],
        "greeted": ["succeeded", "Hello Node!"],
        "logs": ["greeting Node"],
        "stopped": [202, "cancelled"],
        "retried": ["failed", "not yet", 200, "succeeded"],
        "problem": [
            422, "unknown_task", "No task is named 'client.gret'. Did you mean 'client.greet'?",
        ],
    }  # fmt: skip
    assert Task.objects.count() == 3
    lease = Lease.objects.get(stop_requested_at__isnull=False)
    assert (lease.stop_requested_by, lease.stop_reason) == ("ann", "enough")
    assert set(Audit.objects.values_list("actor", flat=True)) == {"ann"}


def test_curl_enqueues_and_waits(root: str, start_worker: StartWorker) -> None:
    curl = require_tool("curl")
    start_worker("--pool", "thread")

    def ask(path: str, *arguments: str) -> Any:
        command = [curl, "-sS", "--fail-with-body", "-u", "ann:secret", f"{root}{path}", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, (ran.stdout, ran.stderr)
        return json.loads(ran.stdout)

    json_body = ("-H", "Content-Type: application/json", "-d")
    given = ask("tasks/", *json_body, '{"name": "client.greet", "args": ["curl"]}')
    task = ask(f"tasks/{given['id']}/?wait=20")
    assert (task["status"], task["return_value"]) == ("succeeded", "Hello curl!")
    assert ask("tasks/?q=status:succeeded")["results"][0]["id"] == given["id"]
