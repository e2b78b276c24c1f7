"""The commands and requests of the pages run: against the shop that the pages speak of."""

from __future__ import annotations

import json
import re
import shlex
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from taskqueue import builtin, definitions
from taskqueue.declarations.workflows.workflow import workflows
from tests.api.conftest import ApiClient
from tests.docs import shop
from tests.docs.test_blocks import commands_of
from tests.documents import PAGES, Block, page

pytestmark = pytest.mark.django_db
ANY_ID = re.compile(r"\bID\b|\b01a2022f-c607-74e3-a122-9f8b03c681f8\b")
UNHEALTHY = ("doctor", "health")
"""Commands whose exit code tells how things are."""
ENDLESS = {"top": ["--once"]}
WAITING = re.compile(r" --wait \S+")


def blocks_with(language: str, text: str) -> list[Block]:
    return [
        block
        for each in PAGES
        for block in each.all_blocks
        if block.language == language and text in block.text and each.path.name != "tutorial.md"
    ]


@pytest.fixture
def _shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> None:
    """The shop, whose definitions are forgotten afterwards."""
    definitions.registry.all()  # The modules of tasks are imported with the settings of the tests.
    for registry in (definitions.registry, workflows):
        monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    settings.TASKQUEUE = {**settings.TASKQUEUE, "BUILTIN_TASKS": {"command": ["clearsessions"]}}
    monkeypatch.chdir(tmp_path)
    builtin.declare()
    shop.declare()
    shop.furnish()


@pytest.mark.usefixtures("_shop")
@pytest.mark.parametrize("block", blocks_with("console", "manage.py taskqueue"), ids=str)
def test_the_commands_of_a_block_run_one_after_another(block: Block) -> None:
    for command in commands_of(block):
        if " taskqueue " in command:
            run(command)


def run(command: str) -> None:
    """Run a command of `manage.py taskqueue`; it must succeed."""
    text, _, file = WAITING.sub("", command).partition(" > ")
    _, _, *arguments = shlex.split(text, comments=True)
    verb, *further = arguments
    is_of_workflows = verb == "workflows"

    def fitting(found: re.Match[str]) -> str:
        return shop.workflow_for(further[0]) if is_of_workflows else shop.task_for(verb)

    arguments = [ANY_ID.sub(fitting, word) for word in arguments]
    out = StringIO()
    try:
        call_command("taskqueue", *arguments, *ENDLESS.get(verb, ()), stdout=out, no_color=True)
    except CommandError as error:
        if verb not in UNHEALTHY or error.returncode != 1:
            raise AssertionError(f"{command}: {error}") from error
    if file:
        Path(file).write_text(out.getvalue())


def requests() -> list[str]:
    """The requests of the page of the REST API, each as one line of a shell."""
    found: list[str] = []
    for block in page("api.md").all_blocks:
        if block.language == "sh" and "$URL" in block.text:
            text = block.text.replace("\\\n", " ")
            found += re.findall(r"^api .*?(?=^\w|\Z)", text, re.MULTILINE | re.DOTALL)
    return [request.strip() for request in found]


@pytest.mark.usefixtures("_shop")
def test_the_requests_of_the_rest_api_are_answered(root: ApiClient) -> None:
    sent = requests()
    assert len(sent) > 20
    for request in sent:
        send(root, request)


def send(client: ApiClient, request: str) -> None:
    """Send it as curl would; the answer must be none of an error."""
    words = shlex.split(request)
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    address = next(word for word in words if word.startswith("$URL/"))
    verb = address.split("$ID/")[-1].partition("/")[0]
    address = address.replace("$ID", shop.task_for(verb)) if "$ID" in address else address
    address = re.sub(r"wait=\d+", "wait=0", address.removeprefix("$URL/"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    answer = client.ask(method, address, body)
    assert 200 <= answer.status_code < 300, (request, answer.content.decode())


@pytest.fixture
def root() -> ApiClient:
    """A client of a user who may do everything."""
    from django.contrib.auth.models import User

    client = ApiClient()
    client.force_login(User.objects.create_superuser("root"))
    return client
