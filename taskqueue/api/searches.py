"""Saved searches: a user's own, and those that are shared."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import MANAGE_SEARCHES, VIEW_TASKS
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Flag, Reasoned, Text
from taskqueue.api.problems import Problem, forbidden
from taskqueue.api.views import LongPaged, OneView, page, page_of, rows_after
from taskqueue.engine.control.searches import (
    LONGEST_SEARCH,
    SEARCH_VERBS,
    may_change,
    save_search,
)
from taskqueue.engine.control.verb import Verb
from taskqueue.exceptions import SavedSearchDoesNotExist
from taskqueue.models import SavedSearch
from taskqueue.models.search import LONGEST_SEARCH_NAME
from taskqueue.monitoring.read_models.saved_search import ShownSearch, search_rows, shown_searches
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.searching.search import parse
from taskqueue.monitoring.searching.search_tokens import SearchError

Searches = page_of(ShownSearch, "Saved searches, the oldest first.")


def _checked(query: str) -> None:
    """Raise 422 for a text that is no search."""
    try:
        parse(query, now=now())
    except SearchError as error:
        raise Problem(422, "invalid_filter", str(error), at=("query",)) from None


class SearchEdited(Reasoned):
    """The changes; fields that are left out keep their values."""

    name = Text(required=False, max_length=LONGEST_SEARCH_NAME)
    query = Text(
        required=False, max_length=LONGEST_SEARCH, help_text="The search, as `q` of `tasks/`."
    )
    is_shared = Flag(
        required=False, help_text="Whether all who may view tasks see it; takes manage_searches."
    )


class SearchSaved(SearchEdited):
    """A search to be saved."""

    name = Text(max_length=LONGEST_SEARCH_NAME, help_text="Unique among those of its owner.")
    query = Text(max_length=LONGEST_SEARCH, help_text="The search, as `q` of `tasks/`.")


class SearchView(OneView):
    """One saved search. If-Match compares when it was changed."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "searches"
    compared = ("pk", "changed_at")
    answers = {200: ShownSearch}

    def find(self, key: Any) -> SavedSearch:
        text = str(key)
        is_key = text.isascii() and text.isdecimal() and len(text) < 19
        row = search_rows(self.request.user).filter(pk=int(text)).first() if is_key else None
        if row is None:
            raise SavedSearchDoesNotExist(f"There is no saved search {key}.")
        self.details(row)  # Raises where a value in it is hidden from the user.
        return row

    def details(self, found: SavedSearch) -> ShownSearch:
        shown = shown_searches([found], self.request.user)
        if not shown:
            raise SavedSearchDoesNotExist(f"There is no saved search {found.pk}.")
        return shown[0]

    def outcome(self, verb: Verb, key: Any, result: Any) -> Response:
        """Show the changed row: who stops sharing another's search cannot find it any more."""
        if verb.name == "delete":
            return super().outcome(verb, key, result)
        return self.shown(self.details(result), part=self.part(result))


class SearchList(SearchView):
    """All saved searches that the user may see."""

    needs = {"GET": (VIEW_TASKS,), "POST": (VIEW_TASKS,)}
    is_conditional = False

    @endpoint("listSearches", answers={200: Searches}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Your own searches and those that are shared, the oldest first."""
        found = rows_after(search_rows(request.user), "id", self.parameters, int)
        return page(self, found, "id", lambda rows: shown_searches(rows, request.user))

    @endpoint("saveSearch", answers={201: ShownSearch}, body=SearchSaved, problems=(409,))
    def post(self, request: Request) -> Response:
        """Save a search under a name."""
        given = dict(self.parameters)
        name = given.pop("name")
        _checked(given["query"])

        def act() -> Response:
            row = save_search(name, by=request.user, **given)
            return self.answer(row.pk, status=201, Location=self.address("search", row.pk))

        return self.idempotent(act)


class SearchDetail(SearchView):
    """Looking at a saved search, changing and deleting it."""

    needs = {"GET": (VIEW_TASKS,), "PATCH": (VIEW_TASKS,), "DELETE": (VIEW_TASKS,)}

    @endpoint("getSearch", answers={200: ShownSearch}, problems=(404,))
    def get(self, request: Request, search_id: str) -> Response:
        """Return a saved search."""
        return self.answer(search_id)

    @endpoint(
        "changeSearch", answers={200: ShownSearch}, body=SearchEdited, problems=(404, 409, 412)
    )
    def patch(self, request: Request, search_id: str) -> Response:
        """Change a saved search: your own, or a shared one with manage_searches."""
        if "query" in self.parameters:
            _checked(self.parameters["query"])
        self._require_change(search_id)
        return self.act(SEARCH_VERBS["edit"], search_id, **self.parameters)

    @endpoint("deleteSearch", answers={204: None}, query=Reasoned, problems=(404, 409, 412))
    def delete(self, request: Request, search_id: str) -> Response:
        """Delete a saved search: your own, or with manage_searches a shared one."""
        self._require_change(search_id)
        return self.act(SEARCH_VERBS["delete"], search_id, **self.parameters)

    def _require_change(self, search_id: str) -> None:
        """Refuse before anything is locked. Raises 404 and 403."""
        if not may_change(self.find(search_id), self.request.user):
            raise forbidden(self.request.user, (MANAGE_SEARCHES,))
