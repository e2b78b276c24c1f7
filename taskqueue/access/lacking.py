"""Sentences that say which permissions a user lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from taskqueue.access.roles import APP


def lacking(user: Any, permissions: Sequence[str]) -> str:
    """Return the sentence that names those of the permissions that the user does not have.

    Empty if none is missing.
    """
    missing = names_of_missing(user, permissions)
    if not missing:
        return ""
    plural = "s" if len(missing) > 1 else ""
    return f"You need the permission{plural} {' and '.join(missing)}."


def names_of_missing(user: Any, permissions: Iterable[str]) -> list[str]:
    """Return the titles, with the names, of those of the permissions that the user lacks."""
    return [_named(permission) for permission in permissions if not user.has_perm(permission)]


def _named(permission: str) -> str:
    title = _titles().get(permission)
    return permission if title is None else f"'{title}' ({permission})"


@cache
def _titles() -> dict[str, str]:
    """Return the titles of this app's permissions, as `migrate` writes them, by permission."""
    from django.apps import apps

    found = {}
    for model in apps.get_app_config(APP).get_models():
        meta = model._meta
        for action in meta.default_permissions:
            name = f"{APP}.{action}_{meta.model_name}"
            found[name] = f"Can {action} {meta.verbose_name_raw}"
        found |= {f"{APP}.{codename}": str(title) for codename, title in meta.permissions}
    return found
