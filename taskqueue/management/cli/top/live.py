"""The loop of `top`: read repeatedly, and show frames or documents on the terminal."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from types import FrameType
from typing import Any, NamedTuple

from taskqueue.core.durations import duration_from_text
from taskqueue.engine.connections import installed, open_worker_connection, project_connection
from taskqueue.management.cli.cells import fitted, one_line
from taskqueue.management.cli.errors import TROUBLE, line_of
from taskqueue.management.cli.output import Output, legible
from taskqueue.management.cli.stats import json_of_counts
from taskqueue.management.cli.subcommand import argument, subcommand
from taskqueue.management.cli.top.frame import Line, frame
from taskqueue.monitoring.overview import Overview, overview
from taskqueue.worker.wakeup import WakePipe

# Seconds between refreshes.
SHORTEST, LONGEST = 0.2, 3600.0
# Seconds without an answer after which the database is reported as silent.
SILENCE = 5.0
# Seconds after which a frame is drawn again without a new reading.
TICK = 1.0
# The TERM of terminals without escape sequences, as in some editors.
DUMB = "dumb"
# The width of a frame without a terminal.
COLUMNS = 120


def _interval(text: str) -> float:
    with suppress(ValueError):
        if SHORTEST <= (seconds := duration_from_text(text).total_seconds()) <= LONGEST:
            return seconds
    raise ArgumentTypeError(
        f"must be from {SHORTEST:g} to {LONGEST:g} seconds, such as 2, 500ms or 1m"
    )


@subcommand(
    "top",
    "live overview in the terminal: counts, queues, workers, running tasks",
    argument(
        "--interval", type=_interval, default=2.0, metavar="DURATION",
        help="time between refreshes, such as 500ms; default: 2s",
    ),
    argument(
        "--once", action="store_true",
        help="print once, then exit; text without a terminal, or to a dumb one, does so too. JSON "
        "continues, one document per line",
    ),
    example="top --interval 1",
)  # fmt: skip
def top(flags: Namespace, output: Output) -> None:
    connection = project_connection()
    title = f"taskqueue  {connection.settings_dict['NAME']} ({connection.vendor})  "
    if output.is_json and not flags.once:
        _stream(output, interval=flags.interval)
    elif flags.once or not output.is_terminal or os.environ.get("TERM") == DUMB:
        seen = overview()
        lines = frame(seen, columns=COLUMNS, title=title)
        output.say((line.text for line in lines), _document(seen))
    else:
        _watch(f"{title}q quits  ", interval=flags.interval)


def _document(overview: Overview) -> dict[str, Any]:
    """Return the whole overview as an object."""
    last, whole = overview.last_minute, overview.hour.whole
    return {
        "at": overview.at,
        **json_of_counts(overview.counts),
        "per_minute": last.ended,
        "this_minute": overview.this_minute.ended,
        "failed_per_minute": last.failed + last.lost,
        "wait_p95": whole.wait_p95,
        "run_p95": whole.run_p95,
        "queues": overview.queues,
        "workers": list(map(asdict, overview.workers)),
        "running": list(map(asdict, overview.running)),
        "notices": list(map(asdict, overview.notices)),
    }


class Seen(NamedTuple):
    """The last overview that could be read, and the last error of the database, if any."""

    overview: Overview | None = None
    trouble: str = ""


class Reader:
    """Reads at an interval, on a separate connection that is reopened after errors.

    It does not keep the process from exiting.
    """

    def __init__(self, *, interval: float, on_read: Callable[[], None]) -> None:
        self._interval = interval
        self._on_read = on_read
        self._seen = Seen()
        self._asked_at: float | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="taskqueue-top", daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=0.5)

    @property
    def seen(self) -> Seen:
        """The last reading, with how long the database has been silent since."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else time.monotonic() - asked_at
        if silent < SILENCE:
            return self._seen
        return Seen(self._seen.overview, f"No answer for {silent:.0f} s")

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._asked_at = time.monotonic()
            try:
                with closing(open_worker_connection(silence=SILENCE)) as connection:
                    while not self._is_over.is_set():
                        self._asked_at = time.monotonic()
                        with installed(connection):
                            seen = Seen(overview())
                        self._show(seen)
            except TROUBLE as error:
                said = one_line(f"No answer, trying again: {line_of(error)}")
                self._show(Seen(self._seen.overview, said))

    def _show(self, seen: Seen) -> None:
        self._seen, self._asked_at = seen, None
        self._on_read()
        self._is_over.wait(self._interval)


def _watch(title: str, *, interval: float) -> None:
    """Show frames until q or Ctrl-C is pressed."""
    with (
        suppress(KeyboardInterrupt),
        Screen() as screen,
        Reader(interval=interval, on_read=screen.ring) as reader,
    ):
        while screen.wait(TICK):
            columns, rows = screen.size
            screen.show(lines_of(reader.seen, columns=columns, rows=rows, title=title))


def lines_of(seen: Seen, *, columns: int, rows: int, title: str) -> list[Line]:
    """Return the last overview as lines, below the current error."""
    lines: list[Line] = []
    if seen.trouble:
        lines.append(Line(fitted(seen.trouble, columns), is_heading=True))
    if seen.overview is not None:
        lines += frame(seen.overview, columns=columns, rows=rows - len(lines), title=title)
    return lines[:rows]


def _stream(output: Output, *, interval: float) -> None:
    """Print one document per line until Ctrl-C. Raises BrokenPipeError when the reader has left."""
    has_read = threading.Event()
    with suppress(KeyboardInterrupt), Reader(interval=interval, on_read=has_read.set) as reader:
        while True:
            has_read.wait()
            has_read.clear()
            overview, trouble = reader.seen
            if trouble or overview is None:
                output.line({"error": trouble})
            else:
                output.line(_document(overview))


# Sequences of ECMA-48 and of xterm, which all current terminals support.
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
        # The pipe stays open because a read in the background may still write to it.

    @property
    def size(self) -> tuple[int, int]:
        """Return the current columns and rows; 80 and 24 for an unknown terminal."""
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
        # After a full line the cursor is on its last character, so clearing there would erase that.
        # And a new line after the last row would scroll the first one out.
        rest = f"\r\n{CLEAR_BELOW}" if len(texts) < rows else ""
        self._write(HOME + "\r\n".join(texts) + rest)

    def ring(self) -> None:
        """End `wait`, from any thread."""
        self._wake_pipe.wake()

    def wait(self, seconds: float) -> bool:
        """Wait until the time is over, a key is pressed or the size changes.

        Return whether to go on.
        """
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
        """Handle Ctrl-Z: give the terminal back to the shell, and take it again on resume."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_suspend)
        self._take()
        self.ring()
