"""`schedules sync`: bring what the code declares to the database."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from django.core.management.base import CommandError

from taskqueue import schedules
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.importing import load_tasks


def _sync(flags: Namespace, output: Output) -> None:
    load_tasks()
    synced = asdict(schedules.sync())
    lines = [f"{what}  {each}" for what, found in synced.items() for each in found]
    output.say("\n".join(lines) or "nothing to change", synced)
    if count := len(synced["refused"]):
        raise CommandError(f"{count} {'was' if count == 1 else 'were'} refused.")


SYNC = Subcommand(
    name="sync",
    help="bring the schedules that the code declares to the database",
    add_arguments=lambda parser: None,
    run=_sync,
)
