"""Which schedules take part in a race, when they must run, and how fast time goes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from taskqueue.rules import Cron
from tests.rules.expressions import EXPRESSIONS, SECOND_EXPRESSIONS, ZONES
from tests.rules.oracle import due_times

YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
CHANGES = (
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
)
"""When clocks are changed in 2026, in each zone that does."""
NEAR = timedelta(hours=2)
"""How near a change time goes slowly."""
WEEK = timedelta(days=7)
FREQUENT, TOO_FREQUENT = 200, 10080
"""With more nominal times in its first week, a rule runs in one zone only, or not at all."""
DAILY = 365
AROUND_CHANGES = (
    "30 2 * * *",
    "15 1,2 * * *",
    "*/30 * * * *",
    "*/10 * * * *",
    "*/20 1-3 * * *",
    "0 * * * *",
    "30 1 * * * 30",
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One schedule; it has the nominal times in (since, until]."""

    expression: str
    zone: str
    since: datetime
    until: datetime
    overlap: str

    @property
    def name(self) -> str:
        """By which it is found; a slash may not be in it."""
        zone = self.zone.replace("/", " ")
        expression = self.expression.replace("/", "|")
        return f"{expression} {zone} since {self.since:%m-%d %H.%M}"

    def rule(self) -> Cron:
        """As it is declared."""
        return Cron(self.expression, tz=self.zone, end=self.until)

    def times(self) -> list[datetime]:
        """When it must run, as the oracle says."""
        found = due_times(self.expression, self.zone, self.since, self.until)
        return [datetime.fromtimestamp(moment, UTC) for moment in found]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A race. Its choices come of the seed; what is done within milliseconds does not."""

    seed: int
    entries: Sequence[Entry]
    since: datetime
    until: datetime
    kill_every: float
    """Writes of all schedulers, on average, between two kills from outside."""
    longest_fuse: int
    """Writes, at most, until a scheduler kills itself."""
    longest_rest: float = 0.3
    """Seconds, at most, until somebody ends what is ready."""
    longest: float = 240.0
    """Seconds after which the race has failed."""
    leap_hours: float = 3.0
    """How many hours time goes beyond the next nominal time, on average, far from changes."""

    def leap(self, following: datetime, chance: random.Random) -> timedelta:
        """How far beyond the next nominal time the clock is turned."""
        if any(abs(following - at) < NEAR for _, at in CHANGES):
            return timedelta(seconds=chance.choice((0, 0, 30, 90, 300, 1200)))
        if chance.random() < 0.2:
            return timedelta(0)
        return timedelta(hours=chance.expovariate(1 / self.leap_hours))


def full_plan(seed: int, *, leap_hours: float = 240.0) -> Plan:
    """All rules in all zones, the most frequent ones in one; all year."""
    since, until = YEAR
    entries = [
        Entry(expression=expression, zone=zone, since=since, until=until, overlap=overlap)
        for place, expression in enumerate((*EXPRESSIONS, *SECOND_EXPRESSIONS), start=2)
        for number, zone in enumerate(ZONES)
        if (overlap := _overlap(expression, zone, place + number))
    ]
    return Plan(
        seed=seed, entries=entries, since=since, until=until, kill_every=1500, longest_fuse=4000,
        longest_rest=6.0, longest=7200, leap_hours=leap_hours,
    )  # fmt: skip


def small_plan(
    seed: int,
    *,
    changes: Sequence[tuple[str, datetime]] = CHANGES,
    kill_every: float = 300,
    longest_fuse: int = 700,
) -> Plan:
    """A few rules, around changes of a clock."""
    entries = [
        Entry(
            expression=expression,
            zone=where,
            since=at - timedelta(hours=6),
            until=at + timedelta(hours=6),
            overlap="skip" if expression == "*/10 * * * *" else "allow",
        )
        for zone, at in changes
        for expression in AROUND_CHANGES
        for where in (zone, "UTC" if at.month > 6 else "Asia/Shanghai")
    ]
    return Plan(
        seed=seed,
        entries=entries,
        since=min(entry.since for entry in entries),
        until=max(entry.until for entry in entries) + timedelta(hours=1),
        kill_every=kill_every,
        longest_fuse=longest_fuse,
    )


def _overlap(expression: str, zone: str, place: int) -> str:
    """What a year's schedule does about overlaps; empty where it takes no part."""
    since, until = YEAR
    count = len(due_times(expression, zone, since, since + WEEK))
    if count > TOO_FREQUENT or (count > FREQUENT and place % len(ZONES) != len(ZONES) - 1):
        return ""
    # Of all that is missed, 500 run in one transaction: nobody may live long enough for that.
    in_all = len(due_times(expression, zone, since, until))
    return "allow" if in_all < DAILY or (in_all == DAILY and place % 3 == 0) else "skip"
