"""Foreign text in the lines of a log."""

from __future__ import annotations


def one_line(text: object) -> str:
    """Text that tasks, users or the database chose, as part of a line of ours.

    It can neither begin a line of its own nor steer a terminal: what is not printable is escaped.
    """
    shown = str(text).strip()
    if shown.isprintable():
        return shown
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown
    )
