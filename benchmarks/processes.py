"""The processes of a benchmark: workers and clients, on a given database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
LONGEST = 900
"""Seconds after which a process is taken to hang."""


class Failed(RuntimeError):
    """A process of the benchmark did not do its work; the message holds what it said."""


class Process:
    """A Python process in a group of its own; nothing of it outlives its `with` block."""

    def __init__(
        self,
        *arguments: str,
        settings: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        self.command = [sys.executable, *arguments]
        self._process = subprocess.Popen(
            self.command,
            cwd=root,
            env={**_environment(settings), "PYTHONPATH": str(root), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The process itself, and its group."""
        return self._process.pid

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def output(self) -> str:
        """Return its output, once it has ended well. Raises `Failed`."""
        try:
            text, _ = self._process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.command} still runs after {LONGEST} s.") from None
        if self._process.returncode:
            raise Failed(f"{self.command} ended with {self._process.returncode}.\n{text}")
        return text

    def answer(self) -> Any:
        """The JSON in its last line."""
        return json.loads(self.output().splitlines()[-1])


def django_command(*arguments: str, settings: Mapping[str, Any], **options: Any) -> Process:
    """Start a management command."""
    return Process("-m", "django", *arguments, settings=settings, **options)


def worker(*arguments: str, settings: Mapping[str, Any], **options: Any) -> Process:
    """Start a worker."""
    return django_command("runworker", "--noreload", *arguments, settings=settings, **options)


def client(name: str, *arguments: object, settings: Mapping[str, Any], **options: Any) -> Process:
    """Start a client: a module of `benchmarks.clients`, which answers in JSON."""
    module = f"benchmarks.clients.{name}"
    return Process("-m", module, *map(str, arguments), settings=settings, **options)


def _environment(settings: Mapping[str, Any]) -> dict[str, str]:
    # Installed packages have bytecode. Where none may be written, each start would compile
    # taskqueue anew, and Django not.
    inherited = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "PYTHONUNBUFFERED": "1",
        "TASKQUEUE_BENCHMARK_DATABASE": json.dumps(dict(settings)),
    }
