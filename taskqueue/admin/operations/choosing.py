"""The tasks of an operation, as people selected them: ticked in a list, or by a search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.control import TaskFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.monitoring.searching.search import parse, permitted_search
from taskqueue.monitoring.searching.search_tokens import SearchError

# The most tasks that can be ticked; a page of the list shows fewer.
MOST_CHOSEN = 1000


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The tasks, as they were chosen."""

    query: str = ""
    ids: tuple[UUID, ...] | None = None
    # Whether an empty search means all tasks, which must be said explicitly.
    is_all: bool = False

    @classmethod
    def of(cls, given: QueryDict) -> Choice:
        """Read the choice from a form or an address; ticked tasks take precedence over a search."""
        if "ids" in given:
            return cls(ids=uuids(given.getlist("ids")))
        return cls(query=given.get("q", "").strip(), is_all=given.get("everything") == "1")

    def which(self, user: Any) -> TaskFilter:
        """Return the filter. Raises `SearchError` if nothing is chosen or the search is invalid."""
        if not (self.ids or self.query or (self.is_all and self.ids is None)):
            raise SearchError(_("No tasks are chosen. Choose some, and try again."))
        if self.ids is None:
            connection = project_connection()
            which = parse(self.query, now=dialect_for(connection).now(connection)).which
            return permitted_search(which, user)
        if len(self.ids) > MOST_CHOSEN:
            told = _("At most %(most)s tasks are ticked; search for more.")
            raise SearchError(told % {"most": MOST_CHOSEN})
        return TaskFilter(ids=self.ids)

    @property
    def fields(self) -> list[tuple[str, object]]:
        """Return it as hidden fields of a form, which `of` reads."""
        if self.ids is not None:
            return [("ids", task_id) for task_id in self.ids]
        says_all = self.is_all and not self.query
        return [("q", self.query), *([("everything", "1")] if says_all else [])]

    @property
    def address(self) -> str:
        """Return the query of the list that shows the search."""
        return f"?{urlencode({'q': self.query})}" if self.query else ""

    @property
    def words(self) -> str:
        """Describe the tasks; a search is shown as it was typed."""
        if self.ids is None:
            return self.query or (_("all tasks") if self.is_all else "")
        words = ngettext("%(count)s chosen task", "%(count)s chosen tasks", len(self.ids))
        return words % {"count": len(self.ids)}


def uuids(texts: Iterable[str]) -> tuple[UUID, ...]:
    """Return the ids among the texts, each once, in their order."""
    found: dict[UUID, None] = {}
    for text in texts:
        for part in text.split(","):
            try:
                found[UUID(part.strip())] = None
            except ValueError:
                continue
    return tuple(found)


def ticked(request: HttpRequest) -> tuple[UUID, ...]:
    """Return the ids of the tasks that were ticked in the list."""
    return uuids(request.POST.getlist(ACTION_CHECKBOX_NAME))
