"""A progress bar: one line that moves at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import time
from types import TracebackType
from typing import Protocol, Self

WIDTH = 30
TERMINAL_SECONDS = 0.1
OTHER_SECONDS = 3.0


class Output(Protocol):
    """Where lines go: a command's `self.stdout`."""

    def write(
        self, msg: str = "", style_func: None = None, ending: str | None = None
    ) -> object: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


class ProgressBar:
    """Shows how much is done; draws no more often than the eye can follow."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._at_terminal = output.isatty()
        self._interval = TERMINAL_SECONDS if self._at_terminal else OTHER_SECONDS
        self._began = time.monotonic()
        self._drawn = 0.0
        self._line = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._line:
            self._draw()
            if self._at_terminal:
                self._output.write()

    def show(self, done: int, total: int, note: str = "") -> None:
        """Draw the bar, unless it was drawn a moment ago."""
        now = time.monotonic()
        self._line = self._describe(done, total, note, seconds=now - self._began)
        if now - self._drawn >= self._interval:
            self._draw()
            self._drawn = now

    def _describe(self, done: int, total: int, note: str, *, seconds: float) -> str:
        share = min(1.0, done / total) if total else 0.0
        bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
        line = f"[{bar}] {share:4.0%}  {done:,} of {total:,} tasks in {seconds:.1f} s"
        return f"{line}  {note}" if note else line

    def _draw(self) -> None:
        if self._at_terminal:
            columns = shutil.get_terminal_size().columns - 1
            self._output.write(f"\r{self._line[:columns]:<{columns}}", ending="")
        else:
            self._output.write(self._line)
        self._output.flush()
