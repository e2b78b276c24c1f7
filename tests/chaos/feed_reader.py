"""A reader that follows the feed of events in a run, however often the database is away."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress

from django.db import DatabaseError, connection

from taskqueue import events
from tests.chaos.feed_rows import ReadRow

PAUSE = 0.1


class FeedReader(threading.Thread):
    """Reads from number to number, on a connection of its own, until `finish`."""

    def __init__(self) -> None:
        super().__init__(name="reader", daemon=True)
        self.rows: list[ReadRow] = []
        self.errors: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self) -> None:
        """Read; keep what went wrong."""
        try:
            while self._read() or not self._is_over.wait(PAUSE):
                pass
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def finish(self) -> None:
        """Let it read what there is, and end."""
        self._is_over.set()
        self.join(60)
        if self.error is not None:
            raise self.error

    def _read(self) -> bool:
        """Read the next events; whether there were any."""
        after = self.rows[-1].seq if self.rows else 0
        try:
            found = events.since(after, limit=200)
        except DatabaseError as error:
            self.errors[type(error).__name__] += 1
            with suppress(Exception):
                connection.close()
            return False
        self.rows += [ReadRow(each.seq, each.kind, str(each.task or "")) for each in found]
        return bool(found)
