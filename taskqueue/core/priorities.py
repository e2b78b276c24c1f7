"""The range of priorities, and names for some of them. Standard library only."""

from __future__ import annotations

from enum import IntEnum

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


class Priority(IntEnum):
    """Named priorities; any whole number from the lowest to the highest is one too."""

    LOWEST = LOWEST_PRIORITY
    LOW = -50
    NORMAL = 0
    HIGH = 50
    HIGHEST = HIGHEST_PRIORITY


# As texts and JSON spell them.
PRIORITY_NAMES: dict[str, Priority] = {each.name.lower(): each for each in Priority}
