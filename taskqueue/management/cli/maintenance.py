"""`prune` and `roles`: delete old rows now; create Django's groups of users."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError

from taskqueue.access.roles import Grant, grant
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.pruning import CAP, prunable, prune_all
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import PERSON, argument, person_of, subcommand


@subcommand("roles", "create or update the groups of viewers, operators and administrators")
def roles(flags: Namespace, output: Output) -> None:
    if not apps.is_installed("django.contrib.auth"):
        raise CommandError("Groups need django.contrib.auth in INSTALLED_APPS.")
    try:
        grants = grant()
    except LookupError as error:
        raise CommandError(str(error)) from None
    output.table(list(map(_row, grants)), ("group", "done", "added", "removed"))


def _row(done: Grant) -> dict[str, Any]:
    changed = done.added or done.removed
    return {
        "group": done.role.group,
        "done": "created" if done.is_new else "updated" if changed else "unchanged",
        "added": ", ".join(done.added),
        "removed": ", ".join(done.removed),
        "permissions": sorted(done.role.permissions),
    }


@subcommand(
    "prune",
    "delete now what is past its retention; running workers do so by themselves",
    argument("--dry-run", action="store_true", help=f"only count, each up to {CAP:,}"),
    *PERSON,
    example='prune --reason "the disk is full"',
)
def prune(flags: Namespace, output: Output) -> None:
    connection = project_connection()
    if flags.dry_run:
        counts, cap, end = prunable(connection), CAP, " would be deleted"
    else:
        counts, cap, end = prune_all(connection, person=person(**person_of(flags))), None, ""
    told = ", ".join(
        f"{number}{'+' if number == cap else ''} {name}"
        for name, number in counts.items()
        if number
    )
    output.say(
        f"prune: {told}{end}" if told else "prune: nothing is past its retention",
        {**({"dry_run": True} if flags.dry_run else {}), **counts},
    )
