"""Untrusted text in log lines."""

from __future__ import annotations


def one_line(text: object) -> str:
    """Return text of tasks, users or the database as part of a log line.

    Characters that are not printable are escaped: the text can neither begin a line nor control a
    terminal.
    """
    shown = str(text).strip()
    if shown.isprintable():
        return shown
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )
