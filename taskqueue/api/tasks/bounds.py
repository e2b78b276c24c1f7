"""How far the options of a request may go.

Whoever may enqueue over REST must not be able to keep a worker, a lease or a row busy for years.
Python code and the definitions themselves are not bounded by these.
"""

from __future__ import annotations

DAY = 86_400
YEAR = 366 * DAY

MOST_ATTEMPTS = 1000
MOST_CRASHES = 100
SHORTEST_BACKOFF = 1
"""Seconds between two attempts, before jitter."""
LONGEST_LEASE = DAY
LONGEST_PING = LONGEST_LEASE // 3
LONGEST_TIMEOUT = 7 * DAY
LONGEST_CRASH_DELAY = DAY
LONGEST_DELAY = YEAR
"""From now until `run_after`, `deadline` and the end of `expires_after`."""
LONGEST_RETENTION = YEAR
LONGEST_UNIQUE_FOR = YEAR
MOST_DISTINCT_WORKERS = 100
"""Workers that must each run a task."""
MOST_CLASSES = 50
LONGEST_CLASS_PATH = 500
