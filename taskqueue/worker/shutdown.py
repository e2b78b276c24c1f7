"""Signals that stop a worker, also while it waits for a database that is not there yet."""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

from django.db import InterfaceError, OperationalError

from taskqueue.core.log_text import one_line

logger = logging.getLogger("taskqueue.worker")

STOPPING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # Seconds between two tries, before jitter.
LOOK_INTERVAL = 0.1  # Seconds between two looks at whether to go on waiting.

T = TypeVar("T")


class Signals:
    """Counts the stopping signals while a worker runs, and wakes it.

    Once there was a signal, later ones are ignored after that time too: the process is on its way
    out, and one more must not change its exit code.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._before: dict[signal.Signals, Any] = {}
        self.count = 0

    def __enter__(self) -> Signals:
        for number in STOPPING_SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.count else handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._wake()


def until_reached(
    step: Callable[[], T], *, is_stopping: Callable[[], bool] = lambda: False
) -> T | None:
    """Repeat `step` until the database answers; None when it is time to stop.

    A reason is logged once, however often it recurs.
    """
    reason = ""
    pause = SHORTEST_PAUSE
    while not is_stopping():
        try:
            answer = step()
        except (OperationalError, InterfaceError) as error:
            text = one_line(" ".join(str(error).split()))
            if text != reason:
                logger.error("Database away, waiting for it error=%s", text)
            reason = text
        else:
            if reason:
                logger.info("Database back")
            return answer
        _sleep(pause * (0.5 + random.random()), is_stopping)  # noqa: S311
        pause = min(LONGEST_PAUSE, pause * 2)
    return None


def _sleep(seconds: float, is_stopping: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0 and not is_stopping():
        time.sleep(min(left, LOOK_INTERVAL))


@contextmanager
def ending_at_once() -> Iterator[None]:
    """TERM and INT end the process, with exit code 0 and whatever it waits for.

    For the time before a worker has begun, and after it has ended, when there is nothing to finish.
    """
    before = {number: signal.signal(number, _end) for number in STOPPING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # Once told to end, it ignores the signal for good: see `Signals`.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for stopping_signal in STOPPING_SIGNALS:
        signal.signal(stopping_signal, signal.SIG_IGN)
    raise SystemExit(0)
