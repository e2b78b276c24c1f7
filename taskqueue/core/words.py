"""Numbers in English sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`, `1,000 tasks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
