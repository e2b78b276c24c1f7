"""The table: for each route of the API and each method, which permissions are all needed.

A new route needs a row here: without one, `test_every_route_stands_in_the_table` fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.admin.matrix.roles import NONE, Permissions

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request, and what it comes to for those who may."""

    method: str
    needs: Permissions
    on: str = ""
    """The row of `tests.admin.everything` that the address names."""
    query: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    """A value such as `$failed` stands for the id of that row, also inside a list."""
    answers: int = 200
    changes: bool = True
    """Whether what is answered has changed rows; only for methods that may."""
    for_anybody: bool = False
    """Also for those who have not logged in."""

    @property
    def writes(self) -> bool:
        """Whether rows are others afterwards."""
        return self.changes and self.method in CHANGING


def look(*needs: str, **more: Any) -> Ask:
    """A GET."""
    return Ask(method="GET", needs=frozenset(needs), **more)


def act(*needs: str, method: str = "POST", **more: Any) -> Ask:
    """A request that changes something, a POST if nothing else is said."""
    return Ask(method=method, needs=frozenset(needs), **more)


ANYBODY_KNOWN = NONE
QUEUE = ("view_queue", "control_queues")

TABLE: dict[str, tuple[Ask, ...]] = {
    "queues/": (look("view_queue"),),
    "queues/<path:name>/": (look("view_queue", on="queue"),),
    "queues/<path:name>/pause/": (act(*QUEUE, on="queue", body={"until": 300}),),
    "queues/<path:name>/resume/": (act(*QUEUE, on="paused queue"),),
}
"""By route, as `taskqueue.api.urls` has it."""
ROUTES = sorted(TABLE)
ASKS = [(route, ask) for route in ROUTES for ask in TABLE[route]]
ACTS = [(route, ask) for route, ask in ASKS if ask.method in CHANGING]
