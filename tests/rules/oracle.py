"""When cron is due, found the slow way: each wall minute, without croniter or our code."""

from __future__ import annotations

import calendar
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
YEAR = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAMES = {name: number for number, name in enumerate(WEEK)}
NAMES |= {name: number for number, name in enumerate(YEAR, 1)}
FIRST_DAY, LAST_DAY = date(2025, 12, 29), date(2027, 1, 3)


def due_times(expression: str, zone: str, after: datetime, until: datetime) -> list[int]:
    """Return the seconds since the epoch in (after, until] at which the expression is due."""
    fields = expression.lower().split()
    minutes, hours = values(fields[0], 0, 59), values(fields[1], 0, 23)
    seconds = values(fields[5], 0, 59) if len(fields) == 6 else [0]
    steady = len(hours) == 24 and is_invariant(minutes, seconds, zone)
    low, high = stamp(after), stamp(until)
    found: set[int] = set()
    of_day = [hour * 60 + minute for hour in hours for minute in minutes]
    for day in matching_days(fields, after.date(), until.date()):
        midnight = minute_of(day)
        for utc in minutes_of_utc([midnight + minute for minute in of_day], zone, steady):
            found.update([utc * 60 + second for second in seconds])
        if not steady:
            found.update(made_up_for([midnight + minute for minute in of_day], zone))
    return sorted([moment for moment in found if low < moment <= high])


def stamp(moment: datetime) -> int:
    return int(moment.timestamp())


def minutes_of_utc(walls: list[int], zone: str, steady: bool) -> list[int]:
    """Return when the clock shows these minutes: each time it does, or only the first."""
    there = moments_of_walls(zone)
    if steady:
        return [utc for wall in walls for utc in there.get(wall, ())]
    return [there[wall][0] for wall in walls if wall in there]


def made_up_for(walls: list[int], zone: str) -> list[int]:
    """Return, for minutes that the clock does not show, the first second that it shows next."""
    there, found = moments_of_walls(zone), []
    for wall in walls:
        if wall not in there:
            following = next(later for later in range(wall, wall + 1440) if later in there)
            found.append(there[following][0] * 60)
    return found


@cache
def moments_of_walls(zone: str) -> dict[int, list[int]]:
    """Return, for each minute that a clock in the zone shows, the minutes of UTC, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for utc, offset in enumerate(offsets(zone), minute_of(FIRST_DAY)):
        found[utc + offset].append(utc)
    return dict(found)


@cache
def offsets(zone: str) -> list[int]:
    """Return the offset in minutes at each minute of UTC.

    Only around changes each minute is looked at: no zone changes twice within an hour.
    """
    place, found = ZoneInfo(zone), []

    def offset_at(moment: datetime) -> int:
        offset = moment.astimezone(place).utcoffset()
        assert offset is not None
        assert not offset % MINUTE
        return offset // MINUTE

    moment, end = (datetime.combine(day, datetime.min.time(), UTC) for day in (FIRST_DAY, LAST_DAY))
    while moment < end:
        first = offset_at(moment)
        is_steady = first == offset_at(moment + HOUR)
        found += [first if is_steady else offset_at(moment + n * MINUTE) for n in range(60)]
        moment += HOUR
    return found


@cache
def shift_of(zone: str) -> int:
    """Return by how many minutes the clock is set forward and back."""
    return max(offsets(zone)) - min(offsets(zone))


def minute_of(day: date) -> int:
    return (day - EPOCH.date()).days * 1440


def is_invariant(minutes: Iterable[int], seconds: Iterable[int], zone: str) -> bool:
    """Whether daylight saving leaves the times within an hour as they are."""
    shift = shift_of(zone)
    pairs = {(minute, second) for minute in minutes for second in seconds}
    return pairs == {((minute + shift) % 60, second) for minute, second in pairs}


def matching_days(fields: list[str], first: date, last: date) -> Iterator[date]:
    months = values(fields[3], 1, 12)
    either = fields[2] not in "*?" and fields[4] not in "*?"
    day = max(first - timedelta(days=2), FIRST_DAY + timedelta(days=1))
    while day <= min(last + timedelta(days=2), LAST_DAY - timedelta(days=2)):
        of_month, of_week = fits_month(fields[2], day), fits_week(fields[4], day)
        if day.month in months and (of_month or of_week if either else of_month and of_week):
            yield day
        day += timedelta(days=1)


def fits_month(field: str, day: date) -> bool:
    length = calendar.monthrange(day.year, day.month)[1]
    for part in field.split(","):
        if part == "l":
            fits = day.day == length
        elif part.endswith("w"):
            fits = day == nearest_weekday(day.replace(day=min(int(part[:-1]), length)), length)
        else:
            fits = day.day in values(part, 1, 31)
        if fits:
            return True
    return False


def nearest_weekday(day: date, length: int) -> date:
    """Monday to Friday, nearest to `day` within its month."""
    within = [day.replace(day=number) for number in range(1, length + 1)]
    return min((d for d in within if d.isoweekday() < 6), key=lambda d: abs((d - day).days))


def fits_week(field: str, day: date) -> bool:
    number = day.isoweekday() % 7
    for part in field.split(","):
        if part.startswith("l"):
            fits = number == int(part[1:]) and (day + timedelta(days=7)).month != day.month
        elif "#" in part:
            name, _, nth = part.partition("#")
            fits = number == value(name) % 7 and (day.day - 1) // 7 + 1 == int(nth)
        else:
            fits = number in {one % 7 for one in values(part, 0, 6, top=7)}
        if fits:
            return True
    return False


def values(field: str, low: int, high: int, top: int | None = None) -> list[int]:
    """Return the numbers that a field of lists, ranges, steps and names stands for."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        elif "-" in span:
            first, last = (value(end) for end in span.split("-"))
        else:
            first = value(span)
            last = high if step else first
        assert low <= first <= (top or high)
        if last < first:  # past the end, as in 22-2
            assert not step
            found.update(range(first, high + 1), range(low, last + 1))
        else:
            found.update(range(first, last + 1, int(step or 1)))
    return sorted(found)


def value(text: str) -> int:
    return NAMES[text] if text in NAMES else int(text)
