"""Time zones, and the conversion of times on the wall clock of a zone to UTC.

If clocks are put forward, some wall times do not exist (a gap); if they are put back, some occur
twice (a fold; PEP 495). As in Vixie cron, a nominal time in a gap is due once, at the first moment
after the gap, and a nominal time in a fold is due once, at its first occurrence. Rules with the
same pace before and after the change are not affected: they are due at both occurrences in a fold,
and nothing is made up for after a gap.
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
# Outside these dates (in UTC) wall clocks are not computed: local times might leave the calendar.
LATEST = datetime(9999, 12, 29)

# No zone changes its clock twice within this time and returns to the same offset.
_PROBE = timedelta(hours=6)
# Longer than any fold (the longest repeated a whole date), so that the search starts before it.
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
        """Yield the nominal times strictly after `after`, up to the year 9999."""
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
    """Return whether a skipped time is made up for, and the wall time from which to continue."""
    was, is_now = before.end + before.offset, now.start + now.offset
    if rule.keeps_pace(min(was, is_now), max(was, is_now)):
        return False, is_now
    if is_now < was:  # a fold: its wall times have been due already
        return False, was
    skipped = next(rule.walls_from(was), None)
    if skipped is None or skipped >= is_now:
        return False, is_now
    # All times in the gap, and the first moment after it, count as one.
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
    """Return the first second in (low, high] whose offset differs from that of `low`."""
    offset = _offset(zone, low)
    seconds = range((high - low) // SECOND)
    return low + SECOND * bisect_left(
        seconds, True, key=lambda second: _offset(zone, low + second * SECOND) != offset
    )


def _end_of(year: int) -> datetime:
    return LATEST if year == LATEST.year else datetime(year + 1, 1, 1)


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    """Return by how much the wall clock is ahead of UTC; `moment` is naive in UTC."""
    return moment.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) - moment


# Files in the zone directories that are not zones of places: one differs between machines, the
# others count leap seconds, which datetimes do not support.
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
    """Return the zone with this name. Raises InvalidSchedule if this machine does not have it."""
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
    # People most often write just the city.
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
