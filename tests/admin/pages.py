"""Every page that there is to GET, its variants, and the parts of pages that are fetched again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.admin.everything import Everything
from tests.admin.matrix.cells import address, filled_in
from tests.admin.matrix.roles import IS_FULL
from tests.admin.matrix.table import PAGES

STATUSES = (
    "blocked", "scheduled", "ready", "running", "retrying", "succeeded", "failed", "cancelled",
)  # fmt: skip
ROWS: dict[str, tuple[str, ...]] = {
    "task": (*STATUSES, "stranger"),
    "queue": ("queue", "paused queue"),
    "worker": ("worker", "asked worker"),
    "schedule": ("schedule", "paused schedule"),
    "operation": ("operation", "failed operation"),
    "lease": ("lease", "running lease"),
    "workflow": ("workflow", "paused workflow", "finished workflow"),
}
"""Whose pages differ by their state."""
EDITED = {"retry_with": "failed", "reschedule": "scheduled", "update": "ready"}


def variants(route: str, made: Everything) -> Iterator[tuple[str, dict[str, str]]]:
    """The addresses of a route with what they may say; none for one that only takes POST."""
    page = PAGES[route]
    if page.look is None or not page.look:
        return
    if "<slug:what>" in route:
        for what, status in EDITED.items():
            yield address(route, status, made, what=what), {}
        return
    model = route.partition("/")[0]
    rows = ROWS.get(model, (page.on,)) if page.on == model else (page.on,)
    for row in rows:
        yield address(route, row, made), filled_in(page.query, made)
    for query in _queries(route, made):
        yield address(route, page.on, made), query


def some_variants(
    route: str, made: Everything, *, turn: int, of: int
) -> list[tuple[str, dict[str, str]]]:
    """The first of them, and one in so many of the others; with TASKQUEUE_FULL=1 all."""
    found = list(variants(route, made))
    return found if IS_FULL else [*found[:1], *found[1:][turn % of :: of]]


def _queries(route: str, made: Everything) -> Iterator[dict[str, str]]:
    text = made.text
    if route.count("/") == 1:
        yield {"q": text}
        yield {"p": "2", "all": "", "o": "1", "e": "1"}
    if route == "task/":
        for status in STATUSES:
            yield {"q": f"status:{status}"}
        yield {"q": f"{text}:{text}"}
        yield {"q": f'name:"{text}'}
    if route == "task/export/":
        yield {"format": "jsonl"}
        yield {"format": "csv"}
        yield {"format": text}
    if route == "performance/":
        yield {"name": text, "span": "day"}
        yield {"span": text, "sort": text}
    if route == "queue/named/":
        yield {"name": text}
        yield {"name": f"{text} paused"}
    if route == "task/add/":
        yield {"name": text}
        yield {}
    if route == "operation/start/":
        yield {"verb": "update", "q": f'queue:"{text}"'}
        yield {"verb": "cancel", "q": text}
        yield {"verb": "delete", "everything": "1"}
        yield {"verb": "delete", "q": ""}


def text_of(response: Any) -> str:
    """The body, streamed or not."""
    content = response.getvalue() if response.streaming else response.content
    return str(content.decode())
