"""`prune` and `roles`: delete old rows now; create Django's groups of users."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError

from taskqueue.access import roles
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.pruning import CAP, prunable, prune_all
from taskqueue.management.cli.base import Subcommand, add_person, person_of
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
        "done": "created" if done.is_new else "updated" if changed else "unchanged",
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


def _add_prune(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help=f"only count, each up to {CAP:,}")
    add_person(parser)


def _prune(flags: Namespace, output: Output) -> None:
    if flags.dry_run:
        _count(output)
        return
    done = prune_all(project_connection(), person=person(**person_of(flags)))
    told = ", ".join(f"{number} {name}" for name, number in done.items() if number)
    output.say(f"prune: {told}" if told else "prune: nothing is past its retention", {**done})


def _count(output: Output) -> None:
    found = prunable(project_connection())
    told = ", ".join(
        f"{number}{'+' if number == CAP else ''} {name}" for name, number in found.items() if number
    )
    output.say(
        f"prune: {told} would be deleted" if told else "prune: nothing is past its retention",
        {"dry_run": True, **found},
    )


PRUNE = Subcommand(
    name="prune",
    help="delete now what is past its retention; running workers do so by themselves",
    add_arguments=_add_prune,
    run=_prune,
    example='prune --reason "the disk is full"',
)
