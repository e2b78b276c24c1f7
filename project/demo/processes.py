"""The web server and the worker: commands of manage.py in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from project.demo.errors import DemoError

MANAGE = Path(__file__).resolve().parent.parent.parent / "manage.py"
TAIL_LINES = 20
STOP_SECONDS = 45  # More than a worker's own shutdown timeout.


class Process:
    """One command of manage.py, running beside this process; what it prints goes to a log.

    It stands in a session of its own: a Ctrl-C at the terminal reaches the demo alone, which then
    stops its processes in order.
    """

    def __init__(self, name: str, *arguments: str, directory: Path) -> None:
        self.name = name
        self.log_path = directory / f"{name}.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(MANAGE), *arguments],
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def ensure_alive(self) -> None:
        """Raise `DemoError`, with the end of its log, if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise DemoError(f"The {self.name} ended early, with exit code {code}.\n{self.tail()}")

    def stop(self) -> int:
        """Ask it to end, as a service manager would, and return its exit code."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._kill_group()  # Itself, if it did not listen, and whatever it left behind.
        return self._process.wait()

    def tail(self) -> str:
        """Return where its log lies, and the last lines of it."""
        lines = self.log_path.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"The end of {self.log_path}:", *(f"  {line}" for line in lines)])

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
