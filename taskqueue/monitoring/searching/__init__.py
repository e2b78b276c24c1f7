"""Searching tasks: what is typed into the one box, and the pages of what fits it."""

from __future__ import annotations

from taskqueue.monitoring.searching.discretion import (
    NEEDED_TO_SEE,
    SearchNotAllowed,
    hidden_from,
    permitted_search,
    shown_to,
    without,
)
from taskqueue.monitoring.searching.finding import Effort, Page, find
from taskqueue.monitoring.searching.search import Search, parse, written
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
    "written",
]
