"""Identifiers and moments that fit together."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from uuid import UUID

HIGH = 0x7000
VARIANT = 0x8000000000000000
DEPLOYED = timedelta(minutes=25)
"""How long ago the newest version of the project was deployed."""


def id_at(moment: datetime, random: Random) -> UUID:
    """A version 7 UUID of that moment."""
    milliseconds = int(moment.timestamp() * 1000)
    high = milliseconds << 16 | HIGH | random.getrandbits(12)
    return UUID(int=high << 64 | VARIANT | random.getrandbits(62))


def ago(now: datetime, **units: float) -> datetime:
    """So long before."""
    return now - timedelta(**units)


def spread(random: Random, middle: float) -> float:
    """A duration, in seconds: half of them are shorter than `middle`, a few far longer."""
    return float(middle * random.lognormvariate(0, 0.6))
