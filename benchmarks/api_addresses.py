"""The measured addresses of the REST API, listed once Django is set up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from benchmarks.admin_addresses import PAGES_BACK, SEARCHES, STATUSES

if TYPE_CHECKING:
    from django.test import Client

ROOT = "/api/v1/"
PLAIN = (
    "operations/",
    "queues/",
    "queues/queue-3/",
    "workers/",
    "schedules/",
    "schedules/schedule-3/",
    "task-types/",
    "stats/",
    "stats/series/?span=hour",
    "stats/series/?span=day",
    "stats/series/?span=week",
    "stats/failures/",
    "stats/performance/?span=week",
    "healthz/ready",
    "metrics",
)


def addresses(client: Client) -> Iterator[str]:
    """Lists by each status and search, deep pages, what there is of a task of each status."""
    for path in PLAIN:
        yield ROOT + path
    tasks = f"{ROOT}tasks/"
    yield tasks
    for text in (*(f"status:{status}" for status in STATUSES), *SEARCHES):
        yield f"{tasks}?{urlencode({'q': text})}"
    for text in ("status:succeeded", "args.user.id:42"):
        yield _deep(client, f"{tasks}?{urlencode({'q': text})}")
    for status in STATUSES:
        for task in _listed(client, f"{tasks}?{urlencode({'q': f'status:{status}', 'limit': 1})}"):
            for part in ("", "attempts/", "logs/", "why/"):
                yield f"{tasks}{task['id']}/{part}"


def _listed(client: Client, address: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = client.get(address).json()["results"]
    return results


def _deep(client: Client, address: str) -> str:
    """The page that is so many pages further back."""
    for _ in range(PAGES_BACK):
        following = client.get(address).json()["next"]
        if following is None:
            break
        address = following
    return address
