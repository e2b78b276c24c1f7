"""Time zones, and nominal times of the wall clock of one, in UTC.

Where clocks are put forward, wall times are left out (a gap); where they are put back, wall times
come twice (a fold; PEP 495). As in Vixie cron, a nominal time in a gap runs once, at the first
moment after it, and one in a fold runs once, at its first time. Rules that keep a steady pace
through the change are not disturbed: what comes twice runs twice, nothing is made up for.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.base import RESOLUTION, Rule
from taskqueue.rules.values import SECOND, shown, suggestion

EARLIEST = datetime(1, 1, 4)
# Beyond these no wall clock is asked, in UTC: a zone's own time might leave the calendar.
LATEST = datetime(9999, 12, 29)

# No zone changes its clock twice in so short a time and comes back to the same offset.
_PROBE = timedelta(hours=6)
# Longer than any fold (dates were repeated, at most): what a moment may be in the midst of.
_LOOK_BACK = timedelta(days=2)


@dataclass(frozen=True, init=False, repr=False)
class ClockRule(Rule):
    """A rule in terms of the wall clock of a zone."""

    tz: str

    @abstractmethod
    def walls_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the nominal times at or after `wall`, which is naive, strictly increasing."""

    @abstractmethod
    def keeps_pace(self, low: datetime, high: datetime) -> bool:
        """Return whether the rule is steady in real time through a gap or fold of [low, high)."""

    def _times(self, after: datetime) -> Iterator[datetime]:
        """Yield the nominal times strictly after `after`; those beyond the year 9999 are none."""
        naive = after.replace(tzinfo=None)
        if naive >= LATEST:
            return
        earliest = max(naive + RESOLUTION, EARLIEST)
        before: Stretch | None = None
        for stretch in stretches(zone(self.tz), earliest - _LOOK_BACK):
            if stretch.end > earliest:
                begin = stretch.start + stretch.offset
                if before is not None and before.offset != stretch.offset:
                    made_up, begin = _through_change(self, before, stretch)
                    if made_up and stretch.start >= earliest:
                        yield stretch.start.replace(tzinfo=UTC)
                for wall in self.walls_from(max(begin, earliest + stretch.offset)):
                    if wall >= stretch.end + stretch.offset:
                        break
                    yield (wall - stretch.offset).replace(tzinfo=UTC)
                else:
                    return
            before = stretch


@dataclass(frozen=True)
class Stretch:
    """A span, naive in UTC, from `start` to before `end`, during which a zone has one offset."""

    start: datetime
    end: datetime
    offset: timedelta


def stretches(zone: ZoneInfo, start: datetime) -> Iterator[Stretch]:
    """Yield the stretches of `zone` from `start` on, which is naive in UTC.

    Stretches also end with each year, so that no more years are read than necessary.
    """
    begin = max(start.replace(microsecond=0), EARLIEST)
    for year in range(begin.year, LATEST.year + 1):
        for change in (*_changes(zone, year), _end_of(year)):
            if change > begin:
                yield Stretch(begin, change, _offset(zone, begin))
                begin = change


def _through_change(rule: ClockRule, before: Stretch, now: Stretch) -> tuple[bool, datetime]:
    """Return whether a time is to be made up for at the change, and the wall to go on from."""
    was, is_now = before.end + before.offset, now.start + now.offset
    if rule.keeps_pace(min(was, is_now), max(was, is_now)):
        return False, is_now
    if is_now < was:  # a fold: its walls have had their turn
        return False, was
    skipped = next(rule.walls_from(was), None)
    if skipped is None or skipped >= is_now:
        return False, is_now
    # Whatever fell into the gap, and the first moment after it, are one.
    return True, is_now + RESOLUTION


@lru_cache(maxsize=4096)
def _changes(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """Return when the offset of `zone` changes in that year of UTC, to the second."""
    probe = max(datetime(year, 1, 1), EARLIEST)
    end = _end_of(year)
    offset, changes = _offset(zone, probe), []
    while probe < end:
        following = min(probe + _PROBE, end)
        if _offset(zone, following) != offset:
            following = _first_change(zone, probe, following)
            offset = _offset(zone, following)
            changes.append(following)
        probe = following
    return tuple(changes)


def _first_change(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """Return the first second after `low`, up to `high`, with another offset than that of `low`."""
    offset = _offset(zone, low)
    seconds = range((high - low) // SECOND)
    return low + SECOND * bisect_left(
        seconds, True, key=lambda second: _offset(zone, low + second * SECOND) != offset
    )


def _end_of(year: int) -> datetime:
    return LATEST if year == LATEST.year else datetime(year + 1, 1, 1)


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    """Return what the zone's wall clock is ahead of UTC; `moment` is naive in UTC."""
    return moment.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) - moment


# Files in the directories of zones that are no place's zone: one is another on each machine,
# the others count leap seconds, which datetimes do not know.
_NO_ZONES = re.compile(r"(localtime|posixrules|factory)|(posix|right)/.*", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
_OFFSET = re.compile(r"(UTC|GMT)?[+-]?\d{1,2}(:?\d\d)?", re.IGNORECASE)
_WRITE = _('Write a name of the IANA database, such as "Europe/Berlin".')


def zone_name(owner: str, value: object) -> str:
    """Return the name of a zone that exists. `value` is text, or a ZoneInfo that has a name."""
    if isinstance(value, ZoneInfo):
        if value.key is None:
            raise InvalidSchedule(_(
                "{owner}: tz {shown} has no name. {write}",
                owner=owner, shown=shown(value), write=_WRITE,
            ))  # fmt: skip
        value = value.key
    if not isinstance(value, str):
        raise InvalidSchedule(_(
            "{owner}: tz must be the name of a zone, not {shown}. {write}",
            owner=owner, shown=shown(value), write=_WRITE,
        ))  # fmt: skip
    if _OFFSET.fullmatch(value):
        raise InvalidSchedule(_(
            "{owner}: tz {shown} is a fixed offset, which knows no daylight saving. {write}",
            owner=owner, shown=shown(value), write=_WRITE,
        ))  # fmt: skip
    if not _NAME.fullmatch(value) or _NO_ZONES.fullmatch(value):
        raise InvalidSchedule(_(
            "{owner}: tz {shown} is not the name of a zone. {write}",
            owner=owner, shown=shown(value), write=_WRITE,
        ))  # fmt: skip
    if value != "UTC" and value not in _names():
        hint = _nearest(value) or _(" {hint}", hint=_WRITE)
        raise InvalidSchedule(_(
            "{owner}: no time zone is named {shown}.{hint}",
            owner=owner, shown=shown(value), hint=hint,
        ))  # fmt: skip
    return value


def zone(name: str) -> ZoneInfo:
    """Return the zone of that name. Raises InvalidSchedule where this machine has none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSchedule(_(
            "This machine has no time zone {name!r}. Install the package tzdata.", name=name
        )) from error  # fmt: skip


def _nearest(name: str) -> str:
    by_lower_case = {known.lower(): known for known in _names() if not _NO_ZONES.fullmatch(known)}
    exact = by_lower_case.get(name.lower())
    if exact:
        return _(" Did you mean {near!r}?", near=exact)
    # A city alone is what people most often write.
    cities = {known.rpartition("/")[2]: known for known in sorted(by_lower_case.values())}
    city = {short.lower(): known for short, known in cities.items()}.get(name.lower())
    return (
        _(" Did you mean {near!r}?", near=city)
        if city
        else suggestion(name, by_lower_case.values())
    )


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
