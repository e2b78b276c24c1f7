"""The worker's log: where it goes where LOGGING says nothing about it, and text from elsewhere."""

from __future__ import annotations

import logging


def show_logs(level: int) -> None:
    """Show the log of taskqueue on standard error, unless the project has said where it goes."""
    logger = logging.getLogger("taskqueue")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)


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
