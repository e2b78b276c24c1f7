"""Who knocks: sets of permissions, and clients that are logged in with them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from django.contrib.auth.models import Permission, User
from django.test import Client

from taskqueue.access.roles import ADMINISTRATOR, ROLES

Permissions = frozenset[str]
EVERY_PERMISSION: Permissions = ADMINISTRATOR.permissions
NONE: Permissions = frozenset()
GROUPS: dict[str, Permissions] = {role.group: role.permissions for role in ROLES}
IS_FULL = os.environ.get("TASKQUEUE_FULL") == "1"
"""Every single permission is tried on every route, by every method."""


class Clients:
    """One client for each set of permissions, kept: to log in is dearer than to ask."""

    def __init__(self, permission_sets: Iterable[Permissions]) -> None:
        of_app = Permission.objects.filter(content_type__app_label="taskqueue")
        self._known: dict[str, Permission] = {each.codename: each for each in of_app}
        self.anonymous = Client()
        self.superuser = _logged_in(User.objects.create_superuser("superuser"))
        """Who may do everything, and has no permission of their own."""
        self._staff: dict[Permissions, Client] = {}
        for each in (NONE, *permission_sets):
            self.admit(each)

    def admit(self, permissions: Permissions) -> None:
        """Let somebody with these permissions be there, for all tests to come."""
        if permissions not in self._staff:
            self._staff[permissions] = self._member(permissions)

    def staff(self, permissions: Permissions) -> Client:
        """Who may enter the admin, and has these permissions of the app."""
        return self._staff[permissions]

    def _member(self, permissions: Permissions) -> Client:
        name = " ".join(sorted(permissions))
        user = User.objects.create_user(str(hash(name)), is_staff=True)
        user.user_permissions.set(self._known[name] for name in permissions)
        return _logged_in(user)


def _logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def telling_sets(rules: list[list[Permissions]]) -> dict[str, Permissions]:
    """Sets of permissions that tell whether the rules hold.

    For each way that a rule can be met: exactly that, and all there are but one of it. With
    TASKQUEUE_FULL=1 also every permission alone.
    """
    found: dict[str, Permissions] = {"none": NONE, **GROUPS}
    ways = [way for rule in rules for way in rule]
    for way in ways:
        found[f"only {' and '.join(sorted(way))}"] = way
    needed = frozenset().union(*ways) if ways else NONE
    for name in sorted(needed if not IS_FULL else EVERY_PERMISSION):
        found[f"only {name}"] = frozenset({name})
        found[f"all but {name}"] = EVERY_PERMISSION - {name}
    found[f"all but {' and '.join(sorted(needed))}"] = EVERY_PERMISSION - needed
    return found
