"""Delete private searches of users that no longer exist; shared searches are kept.

A worker does this, so that deleting a user does not need this app's tables and database.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import DatabaseError, InterfaceError, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.connections import brief_connection, installed, short_waits
from taskqueue.engine.sessions import is_postgresql, limit_lock_waits
from taskqueue.engine.transient_errors import is_lock_refused
from taskqueue.models import SavedSearch

logger = logging.getLogger("taskqueue.engine")

# The most owners of one step.
BATCH = 500
# Seconds to wait for the table of users, which a migration of the project may have locked.
LOCK_WAIT = 1.0


class SearchPruning:
    """Goes through the owners of private searches, one batch in each step."""

    def __init__(self) -> None:
        self._after = ""

    def step(self, connection: BaseDatabaseWrapper) -> bool:
        """Delete the searches of owners in the next batch that no longer exist.

        Return whether more follow. If the users' database is away, their searches are checked the
        next time.
        """
        try:
            model: Any = apps.get_model(settings.AUTH_USER_MODEL)
        except LookupError:  # A project without users.
            return False
        prefix = f"{model._meta.label_lower}:"
        with installed(connection):
            rows = SavedSearch.objects.using(connection.alias).filter(
                is_shared=False, owner__startswith=prefix
            )
            following = rows.filter(owner__gt=self._after).order_by("owner")
            owners = list(following.values_list("owner", flat=True).distinct()[:BATCH])
            self._after = owners[-1] if len(owners) == BATCH else ""
            gone = _gone(model, {each: each.removeprefix(prefix) for each in owners}, connection)
            if gone:
                rows.filter(owner__in=gone).delete()
        return bool(self._after)


def _gone(model: Any, keys: Mapping[str, str], own: BaseDatabaseWrapper) -> list[str]:
    """Return the keys for which there is no user; none if users cannot be read."""
    wanted = {owner: _key_of(model, text) for owner, text in keys.items()}
    known = [key for key in wanted.values() if key is not None]
    if not known:
        return []
    # Not a replica, which may not have a new user yet.
    alias = router.db_for_write(model)
    try:
        if alias == own.alias:
            with short_waits(own, LOCK_WAIT):
                there = _existing(model, known, own)
        else:
            with brief_connection(alias) as users, _short_waits_of_users(users):
                there = _existing(model, known, users)
    except (DatabaseError, InterfaceError, ImproperlyConfigured) as error:
        if alias == own.alias and not is_lock_refused(error):
            raise
        logger.warning("Users cannot be read database=%s error=%s", alias, type(error).__name__)
        return []
    return [owner for owner, key in wanted.items() if key is not None and key not in there]


def _existing(model: Any, keys: Iterable[Any], connection: BaseDatabaseWrapper) -> set[Any]:
    # Includes users that the project's own manager leaves out.
    rows = model._base_manager.using(connection.alias).filter(pk__in=keys)
    return set(rows.values_list("pk", flat=True))


@contextmanager
def _short_waits_of_users(users: BaseDatabaseWrapper) -> Iterator[None]:
    """Like `short_waits`, which needs this app's tables: a separate database of users has none."""
    with atomic(using=users.alias) if is_postgresql(users) else nullcontext():
        limit_lock_waits(users, LOCK_WAIT)
        yield


def _key_of(model: Any, text: str) -> Any:
    """Return the key in the model's type; None if the text cannot be one of its keys."""
    try:
        return model._meta.pk.to_python(text)
    except ValidationError:
        return None
