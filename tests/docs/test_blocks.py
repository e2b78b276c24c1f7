"""Every block of code in the documentation runs, is checked, or says why it is not run."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
from argparse import ArgumentError, ArgumentParser, _SubParsersAction
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, load_command_class
from django.template import Template
from django.urls import resolve

from taskqueue.monitoring.notice_texts import TEXTS, Code
from tests.conftest import require_tool
from tests.documents import PAGES, Block, Page
from tests.worker_process import ROOT

CHECKED = {"console", "html", "ini", "js", "json", "python", "sh"}
ELSEWHERE = {
    "http": "tests/webhooks sends such messages",
    "mermaid": "tests/docs/test_tables.py compares it with the transitions",
    "pycon": "tests/test_tutorial.py types it in",
    "text": "it is no code",
    "{toctree}": "the build of the site reads it",
}
OURS = ("runworker", "taskqueue", "taskqueue_worker")
OTHERS = {
    "cp", "curl", "django-admin", "docker", "echo", "export", "kubectl", "pip", "systemctl", ".",
    "#",
}  # fmt: skip
"""Commands that are not the project's."""
BLOCKS = [block for page in PAGES for block in page.all_blocks]


def blocks(*languages: str) -> Any:
    found = [block for block in BLOCKS if block.language in languages and not block.reason]
    return pytest.mark.parametrize("block", found, ids=str)


def test_every_block_is_checked_or_says_why_not() -> None:
    left = [
        str(block)
        for block in BLOCKS
        if block.language not in CHECKED and block.language not in ELSEWHERE and not block.reason
    ]
    assert left == [], "Name its language, or write <!-- not run: the reason --> above it."


@blocks("json")
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@blocks("ini")
def test_a_unit_has_its_sections(block: Block) -> None:
    unit = configparser.RawConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block.text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    understand(unit["Service"]["ExecStart"].partition("/bin/")[2])


@blocks("html")
def test_a_template_compiles(block: Block) -> None:
    Template(block.text)


@blocks("js")
def test_a_script_is_javascript(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "script.mjs"
    script.write_text(block.text)
    checked = subprocess.run(
        [require_tool("node"), "--check", str(script)], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr


@blocks("sh")
def test_a_script_is_one_of_the_shell(block: Block) -> None:
    checked = subprocess.run(
        ["bash", "-n"], input=block.text, capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr


@blocks("console", "sh")
def test_a_command_is_understood(block: Block) -> None:
    for command in commands_of(block):
        understand(command)


@blocks("sh")
def test_a_request_has_an_address_and_a_body_of_json(block: Block) -> None:
    text = block.text.replace("\\\n", " ")
    for line in re.findall(r"api (?:-X (?:\w+) )?.*?(?=^\w|\Z)", text, re.MULTILINE | re.DOTALL):
        path = re.search(r"\$URL/([^?\s\"']*)", line)
        if path is not None:
            place = path[1].replace("$ID", "01a2022f-c607-74e3-a122-9f8b03c681f8")
            assert resolve(f"/api/v1/{place}").url_name != "not_found", line
            method = re.search(r"-X (\w+)", line)
            allowed = resolve(f"/api/v1/{place}").func.cls.needs  # type: ignore[attr-defined]
            assert (method[1] if method else "GET") in allowed, line
        if body := re.search(r"-d '([{\[].*?)'", line, re.DOTALL):
            json.loads(body[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_a_command_in_a_sentence_is_understood(page: Page) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.text, flags=re.MULTILINE | re.DOTALL)
    for command in re.findall(r"`(manage\.py (?:taskqueue|runworker)(?: [^`]*)?)`", prose):
        if not re.search(r"…|\.\.\.|<", command) and "\\|" not in command:
            understand(command)


@pytest.mark.parametrize("code", TEXTS)
def test_the_remedy_of_a_notice_names_a_command_that_is_understood(code: Code) -> None:
    remedy = re.sub(r"\{\w+\}", "something", TEXTS[code].remedy)
    for command in re.findall(r'manage\.py (?:[^,.:;"]|[.:](?=\S)|"[^"]*")+', remedy):
        understand(command.partition(" for ")[0])


def commands_of(block: Block) -> list[str]:
    """The commands of a block: the lines after a prompt, or all where there is none."""
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines()
    if block.language == "sh":
        return [line for line in lines if re.match(r"(python )?manage\.py ", line)]
    typed = [line[2:] for line in lines if line.startswith(("$ ", "# "))]
    return typed or [line for line in lines if re.match(r"(python |make |pip |manage\.py )", line)]


def understand(command: str) -> None:
    """Fail unless the parser of the command takes the arguments."""
    words = shlex.split(re.sub(r" > \S+$", "", command), comments=True)
    if words[0] == "python":
        words = words[1:]
    program, *arguments = words
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "-m":
        assert (
            (ROOT / Path(*arguments[0].split("."))).with_suffix(".py").exists()
            or (ROOT / Path(*arguments[0].split("."))).is_dir()
            or arguments[0] == "venv"
        ), command
    elif program != "manage.py":
        assert program in OTHERS, command
    elif arguments and arguments[0] in OURS:
        name, *given = arguments
        parser = load_command_class("taskqueue", name).create_parser("manage.py", name)
        if is_only_named(parser, given):
            return
        try:
            parser.parse_args(given)
        except (CommandError, ArgumentError) as error:
            raise AssertionError(f"{command}: {error}") from None


def is_only_named(parser: ArgumentParser, given: list[str]) -> bool:
    """Whether these are names of subcommands and nothing more, as in a sentence about one."""
    for word in given:
        choices: dict[str, ArgumentParser] = {}
        for action in parser._actions:
            if isinstance(action, _SubParsersAction):
                choices = action.choices
        if word not in choices:
            return False
        parser = choices[word]
    return True
