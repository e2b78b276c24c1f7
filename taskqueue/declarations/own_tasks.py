"""The names of taskqueue's own tasks, with their options.

The engine enqueues them; `taskqueue.alerts.tasks` and `taskqueue.webhooks.tasks` have the bodies.
"""

from __future__ import annotations

from typing import Any

from taskqueue.core.priorities import HIGHEST_PRIORITY
from taskqueue.core.retries import Exponential
from taskqueue.declarations.limits import Concurrency

# What the names of all of them begin with. People neither enqueue nor schedule them.
OF_ITSELF = "taskqueue."
HOUR, DAY = 3600, 86_400

# Those of alerts go before all else on the internal queue: an alert about a backlog must not stand
# at its end.
MAIL: dict[str, Any] = {
    "name": "taskqueue.alerts.mail", "priority": HIGHEST_PRIORITY, "max_attempts": 8, "timeout": 60,
    "backoff": Exponential(base=10, cap=HOUR), "retention": 7 * DAY,
}  # fmt: skip
# The next one comes soon: an old one would tell the watcher nothing.
HEARTBEAT: dict[str, Any] = {
    "name": "taskqueue.alerts.heartbeat", "priority": HIGHEST_PRIORITY, "max_attempts": 1,
    "timeout": 30, "max_crashes": 1, "expires_after": 60, "retention": HOUR,
}  # fmt: skip

# Deliveries to one endpoint at once.
AT_ONCE = 4
DELIVER: dict[str, Any] = {
    "name": "taskqueue.webhooks.deliver",
    "priority": 50,
    "concurrency": Concurrency(AT_ONCE, key="endpoint"),
    # Of errors of our own, such as an unreachable database; an answer is not an error.
    "max_attempts": 10,
    "max_crashes": 10,
    "timeout": 60,
}
TELL: dict[str, Any] = {
    "name": "taskqueue.webhooks.tell_owner", "priority": 100, "max_attempts": 5, "timeout": 60,
}  # fmt: skip
