"""The search of the task list: links that narrow it, and how many tasks match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links
from taskqueue.core.states import TaskStatus
from taskqueue.display import WORDS
from taskqueue.engine.connections import database_alias
from taskqueue.models import Queue
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.searching.finding import Page
from taskqueue.monitoring.searching.search import Search, parse, permitted_search
from taskqueue.monitoring.searching.search_tokens import search_text

Counts = Mapping[str, Count]

MOST_QUEUES = 12
TABS = (
    TaskStatus.RUNNING, TaskStatus.READY, TaskStatus.SCHEDULED, TaskStatus.RETRYING,
    TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.SUCCEEDED, TaskStatus.CANCELLED,
)  # fmt: skip
# Old filter names in addresses, with the qualifiers that replace them.
OLD = {"status": "status", "status__exact": "status", "queue": "queue", "queue_name": "queue"}


@dataclass(frozen=True)
class Link:
    """One choice among several."""

    title: Any
    url: str
    is_current: bool
    count: Count | None = None


class Matching(int):
    """How many tasks match; if not all were counted, one more than known, shown as "50+".

    Django compares it with the rows of a page to find out whether there are others.
    """

    text: str

    def __new__(cls, count: Count) -> Matching:
        number = super().__new__(cls, count.value + count.is_capped)
        number.text = str(count)
        return number

    def __str__(self) -> str:
        return self.text


def searched(request: HttpRequest, text: str) -> Search:
    """Return the search as this user may use it. Raises `SearchError`."""
    search = parse(text, now=timezone.now())
    return replace(search, which=permitted_search(search.which, request.user))


def address(text: str, **more: str) -> str:
    """Return the address of the list with this search and the further parameters."""
    given = {"q": text, **more}
    return "?" + urlencode({name: value for name, value in given.items() if value})


def with_old_filters(request: HttpRequest, links: Links) -> str | None:
    """Return the search address for `?status=failed`; None for an address without old filters."""
    old = {OLD[name]: str(value) for name, value in request.GET.items() if name in OLD and value}
    if not old:
        return None
    text = " ".join(filter(None, (request.GET.get("q", "").strip(), search_text(**old))))
    return links.url("task_changelist") + address(text)


def status_tabs(search: Search | None, counts: Counts | None, *, sort: str) -> list[Link]:
    """Return links to all tasks and to each status, keeping the rest of the search."""
    if search is None:
        return []
    choices = {status.value: WORDS[status.value] for status in TABS}
    known = {"": _all(counts), **(counts or {})}
    return _links(search, "status", {"": _("all"), **choices}, known, sort)


def queue_links(search: Search | None, *, sort: str) -> list[Link]:
    """Return links to queues by name; none if there is only one."""
    if search is None:
        return []
    rows = Queue.objects.using(database_alias()).filter(deleted_at=None).order_by("name")
    chosen = search.values("queue")
    names = [*rows.values_list("name", flat=True)[:MOST_QUEUES], *chosen]
    if len(names) < 2 and not chosen:
        return []
    choices = {"": _("all queues"), **{name: name for name in names}}
    return _links(search, "queue", choices, {}, sort)


def _links(
    search: Search,
    qualifier: str,
    choices: Mapping[str, Any],
    counts: Mapping[str, Count | None],
    sort: str,
) -> list[Link]:
    """Return a link for each choice; the choice without a value removes the qualifier."""
    chosen = search.values(qualifier) or ("",)
    return [
        Link(
            title,
            address(search.narrowed(qualifier, *([value] if value else [])).text, sort=sort),
            value in chosen,
            counts.get(value),
        )
        for value, title in choices.items()
    ]


def matching(page: Page, search: Search | None, counts: Counts | None) -> Matching:
    """Return how many tasks match, as far as the page and the counts of the tabs show."""
    shown = len(page.tasks) + len(page.holders)
    if page.is_all or search is None:
        return Matching(Count(shown))
    total = counts and _all({name: counts[name] for name in search.which.statuses or counts})
    return Matching(total or Count(shown, is_capped=True))


def _all(counts: Counts | None) -> Count | None:
    if counts is None:
        return None
    those = counts.values()
    return Count(sum(count.value for count in those), any(count.is_capped for count in those))
