"""Time zones by their names in the IANA database."""

from __future__ import annotations

import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.values import shown, suggestion

# Files in the directories of zones that are no place's zone: one is another on each machine,
# the others count leap seconds, which datetimes do not know.
_NO_ZONES = re.compile(r"(localtime|posixrules|factory)|(posix|right)/.*", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
_OFFSET = re.compile(r"(UTC|GMT)?[+-]?\d{1,2}(:?\d\d)?", re.IGNORECASE)
_WRITE = 'Write a name of the IANA database, such as "Europe/Berlin".'


def zone_name(owner: str, value: object) -> str:
    """Return the name of a zone that exists. `value` is text, or a ZoneInfo that has a name."""
    if isinstance(value, ZoneInfo):
        if value.key is None:
            raise InvalidSchedule(f"{owner}: tz {shown(value)} has no name. {_WRITE}")
        value = value.key
    if not isinstance(value, str):
        raise InvalidSchedule(
            f"{owner}: tz must be the name of a zone, not {shown(value)}. {_WRITE}"
        )
    if _OFFSET.fullmatch(value):
        raise InvalidSchedule(
            f"{owner}: tz {shown(value)} is a fixed offset, which knows no daylight saving. "
            f"{_WRITE}"
        )
    if not _NAME.fullmatch(value) or _NO_ZONES.fullmatch(value):
        raise InvalidSchedule(f"{owner}: tz {shown(value)} is not the name of a zone. {_WRITE}")
    if value != "UTC" and value not in _names():
        hint = _nearest(value) or f" {_WRITE}"
        raise InvalidSchedule(f"{owner}: no time zone is named {shown(value)}.{hint}")
    return value


def zone(name: str) -> ZoneInfo:
    """Return the zone of that name. Raises InvalidSchedule where this machine has none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSchedule(
            f"This machine has no time zone {name!r}. Install the package tzdata."
        ) from error


def _nearest(name: str) -> str:
    by_lower_case = {known.lower(): known for known in _names() if not _NO_ZONES.fullmatch(known)}
    exact = by_lower_case.get(name.lower())
    if exact:
        return f" Did you mean {exact!r}?"
    # A city alone is what people most often write.
    cities = {known.rpartition("/")[2]: known for known in sorted(by_lower_case.values())}
    city = {short.lower(): known for short, known in cities.items()}.get(name.lower())
    return f" Did you mean {city!r}?" if city else suggestion(name, by_lower_case.values())


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
