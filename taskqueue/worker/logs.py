"""Where the worker's log goes in a project whose LOGGING says nothing about it."""

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
