"""The schedules of the fault run: rules of seconds, with every policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from taskqueue import schedules
from taskqueue.models import Schedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Rule
from tests.chaos import tasks

Fits = Callable[[int], bool]
"""Whether a rule is due at a second since 1970: found without it."""
MakeRule = Callable[[datetime], Rule]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One schedule: its rule, which ends at a moment, and its policies."""

    name: str
    rule: MakeRule
    fits: Fits | None = None
    """None for one that waits for its end."""
    pause: float = 0.0
    """What such a one waits, in seconds."""
    missed: str = "latest"
    window: float | None = None
    overlap: str = "allow"
    body: float = 0.0
    """Seconds that a run takes."""
    schedule_id: int = 0
    since: float = 0.0
    until: float = 0.0
    """Its nominal times are those in (since, until], in seconds since 1970."""

    def times(self) -> list[datetime]:
        """All its nominal times, of one that does not wait."""
        assert self.fits is not None
        seconds = range(int(self.since), int(self.until) + 1)
        return [
            datetime.fromtimestamp(second, UTC)
            for second in seconds
            if self.since < second <= self.until and self.fits(second)
        ]


def _every(seconds: int) -> tuple[MakeRule, Fits]:
    return (lambda end: Every(seconds, end=end), lambda second: second % seconds == 0)


def _cron(field: str, seconds: Sequence[int]) -> tuple[MakeRule, Fits]:
    return (
        lambda end: Cron(f"* * * * * {field}", tz="America/New_York", end=end),
        lambda second: second % 60 in seconds,
    )


def _line(name: str, rule: tuple[MakeRule, Fits], **options: object) -> Line:
    return replace(Line(name=name, rule=rule[0], fits=rule[1]), **options)  # type: ignore[arg-type]


def _after_end(name: str, pause: float, missed: str, body: float) -> Line:
    return Line(
        name=name, rule=lambda end: AfterEnd(pause, end=end), pause=pause, missed=missed,
        overlap="skip", body=body,
    )  # fmt: skip


def _daily(end: datetime) -> Rule:
    return DailyWindow("00:00:00", "23:59:59", every=4, tz="Europe/Berlin", end=end)


RARE = 95
"""Seconds: so far apart that the latest of what was missed may be late by more than a minute."""
TIMETABLE = (
    _line("second, skip", _every(1), missed="skip"),
    _line("second, latest", _every(1), missed="latest", overlap="skip", body=0.1),
    _line("second, all", _every(1), missed="all"),
    _line("second, window", _every(1), missed="window", window=20.0, overlap="queue_one", body=0.2),
    _line("two seconds", _every(2), missed="all", overlap="queue_all", body=0.2),
    _line("five seconds", _every(5), overlap="cancel", body=6.0),
    _line("cron", _cron("*/3", range(0, 60, 3)), missed="skip", overlap="skip", body=0.5),
    _line(
        "cron, all", _cron("1,2,3,15,30,45", (1, 2, 3, 15, 30, 45)), missed="all",
        overlap="queue_one",
    ),
    _line(
        "daily window", (_daily, lambda second: second % 4 == 0), missed="window", window=30.0
    ),
    _after_end("after the end, latest", 1.0, "latest", 0.2),
    _after_end("after the end, skip", 2.0, "skip", 0.5),
    _line("rare, skip", _every(RARE), missed="skip"),
    _line("rare, latest", _every(RARE), missed="latest"),
    _line("rare, all", _every(RARE), missed="all"),
    _line("rare, window", _every(RARE), missed="window", window=80.0),
)  # fmt: skip


def create_timetable(journal: str, *, seconds: float) -> list[Line]:
    """Create all schedules; as they are in the database. They end after so many seconds."""
    lines = []
    for line in TIMETABLE:
        if line.name.startswith("rare") and seconds < 2 * RARE:
            continue
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        schedule = schedules.create(
            line.name, tasks.work, line.rule(end), args=[journal, line.body], missed=line.missed,
            missed_window=line.window, overlap=line.overlap, options={"metadata": {"kind": "run"}},
        )  # fmt: skip
        since = Schedule.objects.get(id=schedule.id).served_until.timestamp()
        lines.append(replace(line, schedule_id=schedule.id, since=since, until=end.timestamp()))
    return lines
