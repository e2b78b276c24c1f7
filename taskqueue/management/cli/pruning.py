"""`prune`: delete now what workers would delete little by little."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.prunable import CAP, prunable
from taskqueue.engine.pruning import prune_all
from taskqueue.management.cli.base import Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output


def _add_prune(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help=f"only count, each up to {CAP:,}")
    add_person(parser)


def _prune(flags: Namespace, output: Output) -> None:
    if flags.dry_run:
        _count(output)
        return
    done = prune_all(project_connection(), person=person(**person_of(flags)))
    told = ", ".join(f"{number} {name}" for name, number in done.items() if number)
    output.say(f"prune: {told}" if told else "prune: nothing was past its time", {**done})


def _count(output: Output) -> None:
    found = prunable(project_connection())
    told = ", ".join(
        f"{number}{'+' if number == CAP else ''} {name}" for name, number in found.items() if number
    )
    output.say(
        f"prune: {told} would be deleted" if told else "prune: nothing is past its time",
        {"dry_run": True, **found},
    )


PRUNE = Subcommand(
    name="prune",
    help="delete now what is past its retention; live workers do so by themselves",
    add_arguments=_add_prune,
    run=_prune,
    example='prune --reason "the disk is full"',
)
