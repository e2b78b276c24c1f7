"""`roles`: groups of Django's for those who look, those who operate, those who administer."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError

from taskqueue.access import roles
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output


def _roles(flags: Namespace, output: Output) -> None:
    if not apps.is_installed("django.contrib.auth"):
        raise CommandError("Groups need django.contrib.auth in INSTALLED_APPS.")
    try:
        grants = roles.grant()
    except LookupError as error:
        raise CommandError(str(error)) from None
    output.table([_row(each) for each in grants], ("group", "done", "added", "removed"))


def _row(done: roles.Grant) -> dict[str, Any]:
    changed = done.added or done.removed
    return {
        "group": done.role.group,
        "done": "created" if done.is_new else "updated" if changed else "as it was",
        "added": ", ".join(done.added),
        "removed": ", ".join(done.removed),
        "permissions": sorted(done.role.permissions),
    }


ROLES = Subcommand(
    name="roles",
    help="create or update the groups of viewers, operators and administrators",
    add_arguments=lambda parser: None,
    run=_roles,
)
