"""Saved searches of the task list: links above it, and the buttons that save and change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone
from django.utils.translation import gettext as _

from taskqueue.access.permissions import MANAGE_SEARCHES
from taskqueue.admin.acts import tell_errors
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.links import back
from taskqueue.admin.refusals import refused
from taskqueue.admin.tasks.narrowing import address
from taskqueue.declarations.payload import storable
from taskqueue.engine.control.searches import (
    LONGEST_SEARCH,
    MOST_SEARCHES,
    SEARCH_VERBS,
    save_search,
)
from taskqueue.exceptions import SavedSearchDoesNotExist, SavedSearchExists, TaskQueueError
from taskqueue.models.search import LONGEST_SEARCH_NAME
from taskqueue.monitoring.read_models.saved_search import ShownSearch, search_rows, shown_searches
from taskqueue.monitoring.searching.search import parse
from taskqueue.monitoring.searching.search_tokens import SearchError

# The searches above the list: all that a user may have, and as many shared ones of others.
MOST_SHOWN = 2 * MOST_SEARCHES


class SaveForm(forms.Form):
    """The shown search; without a name it is called by its text."""

    query = forms.CharField(max_length=LONGEST_SEARCH, strip=True)
    name = forms.CharField(max_length=LONGEST_SEARCH_NAME, required=False)


class ChangeForm(forms.Form):
    """The fields of a saved search that its owner edits."""

    name = forms.CharField(max_length=LONGEST_SEARCH_NAME)
    is_shared = forms.BooleanField(required=False)


@dataclass(frozen=True, kw_only=True)
class SavedLink:
    """A saved search, as a link to its results."""

    search: ShownSearch
    url: str
    is_current: bool


class TaskSearches(ReadOnlyAdmin):
    """Saving requires the permission to view tasks.

    Sharing, and changing shared ones, requires more.
    """

    def saved_searches(self, request: HttpRequest, text: str) -> dict[str, Any]:
        """Return the links, and whether the page's search can be saved."""
        rows = search_rows(request.user).order_by("is_shared", "name", "id")[:MOST_SHOWN]
        links = [
            SavedLink(
                search=search, url=address(search.query), is_current=search.query == text != ""
            )
            for search in shown_searches(rows, request.user)
        ]
        return {
            "saved_searches": links,
            "saved_search": next((link.search for link in links if link.is_current), None),
            "longest_search_name": LONGEST_SEARCH_NAME,
            "may_share": request.user.has_perm(MANAGE_SEARCHES),
        }

    def save_view(self, request: HttpRequest) -> HttpResponse:
        """Save the search of the list under a name."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = SaveForm(request.POST)
        if form.is_valid():
            query = form.cleaned_data["query"]
            name = form.cleaned_data["name"] or query[:LONGEST_SEARCH_NAME]
            self._save(request, name, query)
        tell_errors(self, request, form)
        return back(request, self.links.url("task_changelist"))

    def _save(self, request: HttpRequest, name: str, query: str) -> None:
        try:
            text = parse(query, now=timezone.now()).text
            row = save_search(storable(name, limit=len(name)), query=text, by=request.user)
        except SavedSearchExists:
            told = _("You have saved a search “%(name)s” already.") % {"name": name}
            self.message_user(request, told, messages.ERROR)
        except (SearchError, TaskQueueError) as error:
            self.message_user(request, refused(error), messages.ERROR)
        else:
            self.message_user(request, SEARCH_VERBS["create"].told(row.name), messages.SUCCESS)

    def search_view(self, request: HttpRequest, search_id: int) -> HttpResponse:
        """Rename, share or delete a saved search."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb = SEARCH_VERBS["delete" if request.POST.get("verb") == "delete" else "edit"]
        form = ChangeForm(request.POST)
        given: dict[str, Any] = {}
        if verb.name == "edit":
            if not form.is_valid():
                tell_errors(self, request, form)
                return back(request, self.links.url("task_changelist"))
            given = form.cleaned_data
        # Also None for a search with values that the user may not view.
        rows = search_rows(request.user).filter(pk=search_id)
        row = next(iter(shown_searches(rows, request.user)), None)
        try:
            if row is None:
                raise SavedSearchDoesNotExist(_("There is no such saved search any more."))
            verb.act_by(request.user, row.id, **given)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
        else:
            self.message_user(request, verb.told(given.get("name", row.name)), messages.SUCCESS)
        return back(request, self.links.url("task_changelist"))
