"""The sortable columns of the list of tasks: links in their headings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.tasks.narrowing import address
from taskqueue.monitoring.searching.sorting import Sorting, SortKey

# By column, its sort keys, each with its word; None for the column's label.
SORTED_COLUMNS: Mapping[str, tuple[tuple[SortKey, Any], ...]] = {
    "shown_name": ((SortKey.NAME, None),),
    "priority": ((SortKey.PRIORITY, None),),
    "shown_enqueued": ((SortKey.CREATED, None),),
    "shown_moment": ((SortKey.DUE, _("due")), (SortKey.FINISHED, _("finished"))),
    "shown_duration": ((SortKey.RUN_TIME, None),),
}
# Keys that sort in descending order first.
DESCENDING_FIRST = frozenset(
    {SortKey.CREATED, SortKey.FINISHED, SortKey.RUN_TIME, SortKey.PRIORITY}
)


# For lists without headings: all keys, each with its word.
WORDS: Mapping[SortKey, Any] = {
    SortKey.NAME: _("name"),
    SortKey.PRIORITY: _("priority"),
    SortKey.CREATED: _("enqueued"),
    SortKey.DUE: _("due"),
    SortKey.FINISHED: _("finished"),
    SortKey.RUN_TIME: _("last run"),
}


def sort_choices(current: Sorting | None) -> list[tuple[str, str, bool]]:
    """Return the values of a sort control, their texts, and whether each is the current one."""
    sortings = [
        Sorting(key=key, is_descending=is_descending)
        for key in WORDS
        for is_descending in ((True, False) if key in DESCENDING_FIRST else (False, True))
    ]
    return [
        (str(each), f"{WORDS[each.key]} {'▼' if each.is_descending else '▲'}", each == current)
        for each in sortings
    ]


def sorting_of(text: str) -> Sorting | None:
    """Return the sorting in an address; None for the usual one."""
    try:
        return Sorting.of(text) if text else None
    except ValueError:
        return None


def sortable(header: dict[str, Any], column: str, text: str, current: Sorting | None) -> None:
    """Give the header of a column its links, if the list can be sorted by it."""
    keys = SORTED_COLUMNS.get(column)
    if keys is None:
        return
    links = [_link(key, word or header["text"], text, current) for key, word in keys]
    header["text"] = format_html_join(SafeString(" / "), "{}", ((link,) for link in links))
    chosen = current is not None and any(current.key is key for key, _word in keys)
    if current is not None and chosen:
        direction = "descending" if current.is_descending else "ascending"
        header["sort_attrib"] = format_html(' aria-sort="{}"', direction)


def _link(key: SortKey, word: Any, text: str, current: Sorting | None) -> SafeString:
    """Return the link for a key; if the list is already sorted by it, for the opposite order."""
    sorting = Sorting(key=key, is_descending=key in DESCENDING_FIRST)
    mark = ""
    if current is not None and current.key is key:
        sorting, mark = current.reversed, " ▼" if current.is_descending else " ▲"
    return format_html(
        '<a class="taskqueue-sort-link" href="{}">{}{}</a>',
        address(text, sort=str(sorting)),
        capfirst(str(word)),
        mark,
    )
