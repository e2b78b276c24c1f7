"""Wait for an unavailable database while somebody follows events or log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine.transient_errors import is_outage, is_passing

logger = logging.getLogger("taskqueue.engine")

# Seconds for which a reader waits in total, and between two tries: at first, and at most.
LONGEST_OUTAGE = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


def warn(text: str) -> None:
    """Log a message for a reader without a terminal."""
    logger.warning("Reader waits or goes on text=%s", one_line(text))


class Outage:
    """The wait of one reader. A message is shown when it begins, and one when it is over."""

    def __init__(self, tell: Callable[[str], object] = warn) -> None:
        self._tell = tell
        self._began: float | None = None
        self._pause = FIRST_PAUSE

    def wait_after(self, connection: BaseDatabaseWrapper, error: Exception) -> float:
        """Return the seconds to wait before another try, which opens the connection anew.

        Raises the error if another try is pointless: within a transaction, for an error of another
        kind, and once the database has been away for too long.
        """
        if connection.in_atomic_block or not is_lost(error):
            raise error
        now = time.monotonic()
        if self._began is None:
            self._began = now
            self._tell(
                f"The database is not available ({one_line(error)}). Trying again for up to "
                f"{LONGEST_OUTAGE:.0f} seconds."
            )
        elif now - self._began > LONGEST_OUTAGE:
            raise error
        if connection.vendor != "sqlite":
            close(connection)
        pause, self._pause = self._pause, min(LONGEST_PAUSE, self._pause * 2)
        return pause

    def is_over(self, position: int) -> None:
        """Record that the database answers; the reader continues after `position`."""
        if self._began is not None:
            away = time.monotonic() - self._began
            self._began, self._pause = None, FIRST_PAUSE
            self._tell(
                f"The database answers again after {away:.1f} seconds; going on behind "
                f"number {position}."
            )


def is_lost(error: Exception) -> bool:
    """Return whether the database may answer again after a while."""
    return isinstance(error, InterfaceError) or is_passing(error) or is_outage(error)


def close(connection: BaseDatabaseWrapper) -> None:
    """Close a connection that may be broken."""
    try:
        connection.close()
    except Error:
        connections[connection.alias].connection = None
