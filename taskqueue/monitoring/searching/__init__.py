"""Searching tasks: the syntax of the search box, and pages of matching tasks."""

from __future__ import annotations

from taskqueue.monitoring.searching.finding import Effort, Page, find
from taskqueue.monitoring.searching.search import (
    NEEDED_TO_SEE,
    Search,
    SearchNotAllowed,
    hidden_from,
    parse,
    permitted_search,
    shown_to,
    without,
)
from taskqueue.monitoring.searching.search_tokens import SearchError, search_text

__all__ = [
    "NEEDED_TO_SEE",
    "Effort",
    "Page",
    "Search",
    "SearchError",
    "SearchNotAllowed",
    "find",
    "hidden_from",
    "parse",
    "permitted_search",
    "search_text",
    "shown_to",
    "without",
]
