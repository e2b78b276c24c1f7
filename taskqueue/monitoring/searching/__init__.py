"""Searching tasks: what is typed into the one box, and the pages of what fits it."""

from __future__ import annotations

from taskqueue.monitoring.searching.discretion import (
    SearchNotAllowed,
    permitted_search,
    shown_to,
    without_arguments,
)
from taskqueue.monitoring.searching.finding import Effort, Page, find
from taskqueue.monitoring.searching.search import Search, parse, written
from taskqueue.monitoring.searching.terms import SearchError, search_text

__all__ = [
    "Effort",
    "Page",
    "Search",
    "SearchError",
    "SearchNotAllowed",
    "find",
    "parse",
    "permitted_search",
    "search_text",
    "shown_to",
    "without_arguments",
    "written",
]
