"""Levels of `logging`, by their names or numbers."""

from __future__ import annotations

import logging


def level_number(level: int | str) -> int:
    """Return the number of a level; a name may be in any case. Raises ValueError for no name."""
    if not isinstance(level, str):
        return int(level)
    levels = logging.getLevelNamesMapping()
    if level.upper() not in levels:
        raise ValueError(f"No level is named {level!r}. Choose one of {', '.join(levels)}.")
    return levels[level.upper()]
