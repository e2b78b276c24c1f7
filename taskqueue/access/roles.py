"""The roles of people: groups of Django's, each with the permissions of its kind of work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

APP = "taskqueue"


@dataclass(frozen=True, kw_only=True)
class Role:
    """A group with its permissions."""

    group: str
    # Codenames of this app's permissions.
    permissions: frozenset[str]


VIEW = frozenset({
    "view_alertrule", "view_audit", "view_incident", "view_lease", "view_limit", "view_occurrence",
    "view_operation", "view_queue", "view_rollup", "view_schedule", "view_task", "view_tasklog",
    "view_worker", "view_workflow",
})  # fmt: skip
OPERATE = frozenset({
    "enqueue", "operate", "stop", "control_queues", "edit_schedules", "manage_searches",
})  # fmt: skip
ADMINISTER = frozenset({"manage_alerts", "manage_webhooks", "purge", "view_arguments"})

VIEWER = Role(group="taskqueue viewer", permissions=VIEW)
OPERATOR = Role(group="taskqueue operator", permissions=VIEW | OPERATE)
ADMINISTRATOR = Role(group="taskqueue administrator", permissions=VIEW | OPERATE | ADMINISTER)
ROLES = (VIEWER, OPERATOR, ADMINISTRATOR)


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The changes to one group."""

    role: Role
    is_new: bool
    added: list[str]
    removed: list[str]


def grant(roles: Iterable[Role] = ROLES) -> list[Grant]:
    """Give each role's group exactly its permissions of this app, creating it where there is none.

    What a group has of other apps, and who is in it, stays. Raises LookupError where a permission
    has no row yet: `migrate` makes them.
    """
    from django.contrib.auth.models import Permission

    of_app = Permission.objects.filter(content_type__app_label=APP)
    known = {permission.codename: permission for permission in of_app}
    return [_grant(role, known) for role in roles]


def _grant(role: Role, known: dict[str, Any]) -> Grant:
    from django.contrib.auth.models import Group
    from django.db import router
    from django.db.transaction import atomic

    if missing := sorted(role.permissions - known.keys()):
        raise LookupError(
            f"{APP} has no permission {missing[0]!r} here yet. Run manage.py migrate."
        )
    with atomic(using=router.db_for_write(Group)):
        group, is_new = Group.objects.get_or_create(name=role.group)
        held = group.permissions.filter(content_type__app_label=APP)
        had = set(held.values_list("codename", flat=True))
        added, removed = sorted(role.permissions - had), sorted(had - role.permissions)
        group.permissions.add(*(known[codename] for codename in added))
        group.permissions.remove(*(known[codename] for codename in removed))
    return Grant(role=role, is_new=is_new, added=added, removed=removed)
