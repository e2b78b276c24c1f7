"""Steps of a chart that are over, remembered by this process.

A chart that is kept open asks for the same steps again, of which all but the last few have come to
what they ever will: only these are read again.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from typing import Generic, TypeVar

SETTLES_AFTER = timedelta(minutes=5)
"""A step that has been over for so long changes no more: a process writes a row for ten seconds
from its start (`taskqueue.engine.tally`), and the server ends a transaction that idles."""
FORGOTTEN_AFTER = 600.0
"""Seconds after which all steps are read anew, whatever has been written to them meanwhile."""
MOST_CHARTS = 50

T = TypeVar("T")


class Settled(Generic[T]):
    """What the steps of some charts came to; safe to be used by several threads."""

    def __init__(self) -> None:
        self._charts: dict[Hashable, tuple[float, Mapping[datetime, T]]] = {}

    def of(self, chart: Hashable) -> Mapping[datetime, T]:
        """What is remembered of a chart, by the starts of its steps."""
        read_at, steps = self._charts.get(chart, (0.0, {}))
        return steps if steps and time.monotonic() - read_at < FORGOTTEN_AFTER else {}

    def remember(
        self,
        chart: Hashable,
        steps: Mapping[datetime, T],
        *,
        length: timedelta,
        now: datetime,
        is_anew: bool,
    ) -> None:
        """Keep those that are settled; `is_anew`: none of them was remembered before."""
        before = self._charts.get(chart)
        if not is_anew and before is None:
            return  # Another thread has forgotten it meanwhile.
        if before is None and len(self._charts) >= MOST_CHARTS:
            self.forget()
        read_at = time.monotonic() if is_anew or before is None else before[0]
        last = now - SETTLES_AFTER - length
        self._charts[chart] = read_at, {at: step for at, step in steps.items() if at <= last}

    def forget(self) -> None:
        """Remember nothing."""
        self._charts = {}
