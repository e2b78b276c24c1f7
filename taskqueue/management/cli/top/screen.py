"""The terminal while `top` uses it: alternate screen, keys without Enter, its size."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from taskqueue.management.cli.output import legible
from taskqueue.management.cli.top.frame import Line
from taskqueue.worker.wakeup import WakePipe

# Sequences of ECMA-48 and of xterm, which every terminal of today knows.
# The alternate screen, without cursor and line wrapping.
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
QUIT_KEYS = frozenset(b"qQ\x03\x04")


class Screen:
    """Takes the terminal, and restores it at the end."""

    def __init__(self) -> None:
        self._output = sys.stdout.fileno()
        self._input = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._wake_pipe = WakePipe()
        self._before: dict[signal.Signals, Any] = {}
        self._modes: list[Any] = []

    def __enter__(self) -> Screen:
        handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
            signal.SIGWINCH: lambda number, frame: self.ring(),
            signal.SIGTERM: lambda number, frame: sys.exit(128 + number),
            signal.SIGTSTP: self._on_suspend,
        }
        for number, handler in handlers.items():
            self._before[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(self, *error: object) -> None:
        self._give_back()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # The pipe stays open: a read in the background may still write to it.

    @property
    def size(self) -> tuple[int, int]:
        """The current columns and rows; 80 and 24 of an unknown terminal."""
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    def show(self, lines: Sequence[Line]) -> None:
        """Draw over the last frame, without flicker."""
        _, rows = self.size
        texts = [
            f"{CLEAR_LINE}{BOLD}{line.text}{PLAIN}" if line.is_heading else CLEAR_LINE + line.text
            for line in lines[:rows]
        ]
        # Behind a full line the cursor stands on its last character: what is cleared there would
        # take that away. And below the last row a new line would push the first one out.
        rest = f"\r\n{CLEAR_BELOW}" if len(texts) < rows else ""
        self._write(HOME + "\r\n".join(texts) + rest)

    def ring(self) -> None:
        """End `wait`, from any thread."""
        self._wake_pipe.wake()

    def wait(self, seconds: float) -> bool:
        """Wait until the time is over, a key is pressed or the size changes; whether to go on."""
        watched = [self._wake_pipe.fileno(), *([] if self._input is None else [self._input])]
        ready, _, _ = select.select(watched, [], [], seconds)
        self._wake_pipe.clear()
        if self._input is not None and self._input in ready:
            pressed = os.read(self._input, 1024)
            return bool(pressed) and not QUIT_KEYS & set(pressed)
        return True

    def _take(self) -> None:
        if self._input is not None:
            self._modes = termios.tcgetattr(self._input)
            tty.setcbreak(self._input)
        self._write(ENTER)

    def _give_back(self) -> None:
        self._write(LEAVE)
        if self._input is not None:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._modes)

    def _write(self, text: str) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        octets = legible(text, encoding).encode(encoding)
        while octets:
            octets = octets[os.write(self._output, octets) :]

    def _on_suspend(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-Z: return the terminal to the shell, and take it again on resume."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_suspend)
        self._take()
        self.ring()
