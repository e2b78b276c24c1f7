"""docs/tutorial.md: a newcomer who does what it says sees what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.worker_process import ROOT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sqlite_only]
# Done before the test, or by hand in a browser.
# Django 6.1 is not content with the mail server of `startproject`: the check fails there.
BY_HAND = (
    "python -m venv", ". .venv", "pip install", "createsuperuser", "runserver", "check --deploy",
)  # fmt: skip
# A shell: each line of its input is a piece of a session as JSON, and each of its output what was
# printed otherwise than the tutorial says.
SHELL = """
import contextlib, doctest, io, json, sys
import django
django.setup()
names, answer = {}, sys.stdout
for line in sys.stdin:
    parsed = doctest.DocTestParser().get_doctest(json.loads(line), names, "tutorial", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    told = io.StringIO()
    runner.run(parsed, out=told.write, clear_globs=False)
    names = parsed.globs
    print(json.dumps(told.getvalue()), file=answer, flush=True)
"""


class Block(NamedTuple):
    """A fenced block."""

    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    pattern = r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```'
    return [Block(*found) for found in re.findall(pattern, text, re.MULTILINE | re.DOTALL)]


class Newcomer:
    """Follows the tutorial in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
        }
        self.shell: subprocess.Popen[str] | None = None
        self.worker: subprocess.Popen[str] | None = None
        self.log = folder / "worker.log"

    def follow(self, block: Block) -> None:
        if block.language == "console":
            for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, expected = entry.partition("\n")
                if not any(each in command for each in BY_HAND):
                    self.type_in(command, expected.strip("\n"))
        elif block.language == "pycon":
            self.say(block.text, anew=block.title == "a new shell")
        elif block.title:
            name, _, place = block.title.partition(", ")
            path = self.folder / name
            before = path.read_text() + "\n\n" if place == "at the end" else ""
            path.write_text(before + block.text)

    def type_in(self, command: str, expected: str) -> None:
        """Run a command, and compare what it prints; the worker may have to do its part first."""
        if "runworker" in command:
            with self.log.open("w") as log:
                self.worker = self.start(command.split()[1:], stderr=log)
            return
        shape = ".*".join(map(re.escape, re.split(r"\n?\.\.\.\n?", expected)))
        printed = ""

        def is_as_told() -> bool:
            nonlocal printed
            ended = subprocess.run(
                command, shell=True, cwd=self.folder, env=self.environment,
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            printed = f"{ended.returncode}\n{ended.stdout}{ended.stderr}"
            # Django's test runner writes to the error stream.
            told = (ended.stdout.strip("\n"), (ended.stdout + ended.stderr).strip("\n"))
            fits = not expected or any(re.fullmatch(shape, text, re.DOTALL) for text in told)
            return ended.returncode == 0 and fits

        try:
            wait_until(is_as_told, 60)
        except AssertionError:
            raise AssertionError(f"$ {command}\n{printed}\nexpected:\n{expected}") from None

    def say(self, session: str, *, anew: bool) -> None:
        """Type a piece of a session into the shell, or into another one."""
        if self.shell is None or anew:
            self.close()
            self.shell = self.start(
                ["-c", SHELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(json.dumps(session) + "\n")
        self.shell.stdin.flush()
        told = json.loads(self.shell.stdout.readline())
        assert not told, f"{told}\n{self.log.read_text() if self.log.exists() else ''}"

    def start(self, arguments: list[str], **streams: Any) -> subprocess.Popen[str]:
        command = [sys.executable, *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, **streams)

    def close(self) -> None:
        if self.shell is not None:
            self.shell.communicate(timeout=60)
            self.shell = None

    def go(self) -> None:
        self.close()
        if self.worker is not None:
            self.worker.terminate()
            assert self.worker.wait(120) == 0, self.log.read_text()


def test_who_follows_it_sees_what_it_says(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    try:
        for block in blocks():
            newcomer.follow(block)
    finally:
        newcomer.go()
