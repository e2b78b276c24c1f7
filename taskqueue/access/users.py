"""Identity and permissions of users, whatever their model."""

from __future__ import annotations

from typing import Any


def is_known(user: Any) -> bool:
    """Whether somebody has logged in."""
    return bool(getattr(user, "is_authenticated", False))


def identity_of(user: Any) -> str | None:
    """Return a text that identifies the user; None for a user without a primary key."""
    if not is_known(user) or user.pk is None:
        return None
    kind = getattr(user, "_meta", None)
    label = type(user).__qualname__ if kind is None else kind.label_lower
    return f"{label}:{user.pk}"


def has_all(user: Any, permissions: tuple[str, ...]) -> bool:
    """Whether the user has all of these permissions."""
    return all(user.has_perm(permission) for permission in permissions)
