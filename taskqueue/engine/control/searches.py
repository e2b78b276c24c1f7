"""Saved searches: save, change and delete them. Changes of shared ones are audited."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import MANAGE_SEARCHES, VIEW_TASKS
from taskqueue.access.users import identity_of
from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.control.verb import Verb, verb_table
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidSavedSearch, SavedSearchDoesNotExist, SavedSearchExists
from taskqueue.models import SavedSearch
from taskqueue.models.search import LONGEST_SEARCH_NAME

NOUN = "search"
# The most searches of one owner.
MOST_SEARCHES = 50
LONGEST_SEARCH = 2000


def save_search(
    name: str, *, query: str, by: Any, reason: str = "", is_shared: bool = False
) -> SavedSearch:
    """Save the text of a search for the user `by`.

    Raises `InvalidSavedSearch`, `SavedSearchExists` if the user has a search of that name, and
    PermissionDenied if the user may not share it.
    """
    owner = _owner(by)
    _check(name, query)
    if is_shared:
        _require_sharing(by)
    connection = project_connection()
    who = person(by, reason)
    try:
        with atomic(using=connection.alias):
            take_write_lock(connection)
            rows = SavedSearch.objects.using(connection.alias)
            if rows.filter(owner=owner).count() >= MOST_SEARCHES:
                raise InvalidSavedSearch(_(
                    "At most {most_searches} searches are saved for a user.",
                    most_searches=MOST_SEARCHES,
                ))  # fmt: skip
            row = rows.create(
                name=name, query=query, owner=owner, owner_name=who.by, is_shared=is_shared
            )
            if is_shared:
                audit(connection, NOUN, "create", [Act(_told_name(row))], person=who)
    except IntegrityError:
        raise SavedSearchExists(_("You have a saved search {name!r} already.", name=name)) from None
    row.refresh_from_db(using=connection.alias)
    return row


def change_search(
    key: object,
    *,
    by: Any,
    reason: str = "",
    seen: Seen = None,
    name: str | None = None,
    query: str | None = None,
    is_shared: bool | None = None,
) -> SavedSearch:
    """Rename a saved search, change its text, share it, or stop sharing it.

    Parts that are not given stay as they are. Raises `SavedSearchDoesNotExist`, also for a search
    that the user may not see, `InvalidSavedSearch`, `SavedSearchExists`, and PermissionDenied.
    """
    connection = project_connection()
    given = {"name": name, "query": query, "is_shared": is_shared}
    who = person(by, reason)
    try:
        with atomic(using=connection.alias):
            row = _locked(connection, key, by, seen)
            changes: dict[str, Any] = {
                field: value
                for field, value in given.items()
                if value is not None and value != getattr(row, field)
            }
            _check(changes.get("name", row.name), changes.get("query", row.query))
            if changes and changes.get("is_shared", row.is_shared):
                _require_sharing(by)  # Everybody sees the new content of a shared search.
            if changes:
                was_shared, former = row.is_shared, _told_name(row)
                vars(row).update(changes, changed_at=dialect_for(connection).now(connection))
                row.save(using=connection.alias, update_fields=[*changes, "changed_at"])
                if was_shared or row.is_shared:
                    act = Act(former, detail=", ".join(_told(changes, row)))
                    audit(connection, NOUN, "edit", [act], person=who)
    except IntegrityError:
        raise SavedSearchExists(_(
            "The owner has a saved search {name!r} already.", name=name
        )) from None  # fmt: skip
    return row


def delete_search(key: object, *, by: Any, reason: str = "", seen: Seen = None) -> None:
    """Delete a saved search. Raises `SavedSearchDoesNotExist` and PermissionDenied."""
    connection = project_connection()
    with atomic(using=connection.alias):
        row = _locked(connection, key, by, seen)
        if row.is_shared:
            act = Act(_told_name(row))
            audit(connection, NOUN, "delete", [act], person=person(by, reason))
        SavedSearch.objects.using(connection.alias).filter(pk=row.pk).delete()


def may_change(row: SavedSearch, user: Any) -> bool:
    """Return whether it is the user's own, or is shared and the user may manage shared ones."""
    is_managed = row.is_shared and user.has_perm(MANAGE_SEARCHES)
    return row.owner == identity_of(user) or bool(is_managed)


def _owner(user: Any) -> str:
    owner = identity_of(user)
    if owner is None:
        raise PermissionDenied
    return owner


def _require_sharing(user: Any) -> None:
    if not user.has_perm(MANAGE_SEARCHES):
        raise PermissionDenied(_(
            "Sharing searches requires the permission {permission}.",
            permission=MANAGE_SEARCHES,
        ))  # fmt: skip


def _check(name: str, query: str) -> None:
    for what, text, longest in (
        (_("name"), name, LONGEST_SEARCH_NAME),
        (_("query"), query, LONGEST_SEARCH),
    ):
        if not text.strip():
            raise InvalidSavedSearch(_("The {what} of a saved search is not empty.", what=what))
        if len(text) > longest:
            raise InvalidSavedSearch(_(
                "The {what} of a saved search has at most {longest} characters, not {count}.",
                what=what, longest=longest, count=len(text),
            ))  # fmt: skip
        if storable(text, limit=longest) != text:
            raise InvalidSavedSearch(_(
                "The {what} contains a character that cannot be stored.", what=what
            ))  # fmt: skip
    if not name.isprintable():
        raise InvalidSavedSearch(_("The name of a saved search has printable characters only."))


def _locked(connection: BaseDatabaseWrapper, key: object, user: Any, seen: Seen) -> SavedSearch:
    """Lock a row that the user may change."""
    missing = SavedSearchDoesNotExist(_("There is no saved search {key}.", key=key))
    take_write_lock(connection)
    rows = SavedSearch.objects.using(connection.alias).select_for_update()
    try:
        row = rows.get(pk=int(str(key)))
    except (ValueError, OverflowError, SavedSearch.DoesNotExist):
        raise missing from None
    if not (row.is_shared or row.owner == identity_of(user)):
        raise missing
    if not may_change(row, user):
        _require_sharing(user)
    require_seen(row, seen, _("Saved search {search}", search=row.pk))
    return row


def _told_name(row: SavedSearch) -> str:
    """Return the name for the audit; the id if the search's name is its text."""
    return f"search {row.pk}" if row.query.startswith(row.name) else row.name


def _told(changes: dict[str, Any], row: SavedSearch) -> list[str]:
    """Return the changes for the audit; without the search text, which may contain arguments."""
    told = {"query": "another search", "name": f"name: {_told_name(row)}"}
    told["is_shared"] = "shared" if changes.get("is_shared") else "no longer shared"
    return [told[field] for field in changes]


SEARCH_VERBS = verb_table(
    Verb(
        noun=NOUN,
        name="create",
        permissions=(VIEW_TASKS,),
        label=gettext_lazy("Save search"),
        entry=gettext_lazy("save search"),
        done=gettext_lazy("Search “%(name)s” saved."),
    ),
    Verb(
        noun=NOUN,
        name="edit",
        function=change_search,
        permissions=(VIEW_TASKS,),
        label=gettext_lazy("Change"),
        help="change the name or the text of a saved search, or who sees it",
        entry=gettext_lazy("change search"),
        done=gettext_lazy("Search “%(name)s” changed."),
    ),
    Verb(
        noun=NOUN,
        name="delete",
        function=delete_search,
        permissions=(VIEW_TASKS,),
        label=gettext_lazy("Delete"),
        help="Delete a saved search.",
        entry=gettext_lazy("delete search"),
        done=gettext_lazy("Search “%(name)s” deleted."),
    ),
)
