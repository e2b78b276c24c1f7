"""The description of a subcommand of `manage.py taskqueue`: its arguments and what runs it."""

from __future__ import annotations

import getpass
import os
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

from taskqueue.management.cli.output import FORMATS, Output, add_format

# Adds itself to a parser, or to a group of one.
Argument = Callable[[Any], object]
Run = Callable[[Namespace, Output], None]


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument, described as for argparse."""
    return methodcaller("add_argument", *names, **options)


def group(title: str, *arguments: Argument, description: str | None = None) -> Argument:
    """Return arguments under their own title in the help."""
    return _grouped(methodcaller("add_argument_group", title, description), arguments)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Return arguments of which at most one may be given."""
    return _grouped(methodcaller("add_mutually_exclusive_group", required=required), arguments)


def _grouped(add_group: Callable[[Any], Any], arguments: Sequence[Argument]) -> Argument:
    def add(parser: Any) -> None:
        container = add_group(parser)
        for add_argument in arguments:
            add_argument(container)

    return add


NAME = argument("name", metavar="NAME")
ID = argument("id", metavar="ID")
PERSON = (
    argument("--reason", default="", help="the reason, for the audit"),
    argument("--by", help="the person, for the audit; default: the OS user"),
)


@dataclass(frozen=True, kw_only=True)
class Subcommand:
    """A subcommand of `manage.py taskqueue`, or an action of one."""

    name: str
    help: str
    arguments: Sequence[Argument]
    run: Run
    # Example arguments, for the help.
    example: str = ""
    # The output formats that it has.
    formats: Sequence[str] = FORMATS

    def add_to(self, chosen: Any) -> ArgumentParser:
        """Add its parser to those of a command, and return it."""
        example = f"For example: manage.py taskqueue {self.example}" if self.example else None
        # Without abbreviations, because an unknown flag would be taken for another one: --for for
        # --format.
        parser: ArgumentParser = chosen.add_parser(
            self.name,
            help=self.help,
            description=self.help,
            epilog=example,
            allow_abbrev=False,
        )
        for add_argument in self.arguments:
            add_argument(parser)
        parser.set_defaults(run=self.run)
        return parser


def subcommand(
    name: str,
    help: str,
    *arguments: Argument,
    example: str = "",
    formats: Sequence[str] = FORMATS,
) -> Callable[[Run], Subcommand]:
    """Return a decorator that turns a function into a subcommand."""
    return lambda run: Subcommand(
        name=name, help=help, arguments=arguments, run=run, example=example, formats=formats
    )


def actions_of(*actions: Subcommand) -> Argument:
    """Return an argument that chooses among the actions of a subcommand."""

    def add(parser: ArgumentParser) -> None:
        chosen = parser.add_subparsers(dest="action", metavar="action", help="default: list")
        for action in actions:
            # Without a default of its own, which would override a --format before the action.
            add_format(action.add_to(chosen), default=SUPPRESS, choices=action.formats)

    return add


def not_empty(text: str) -> str:
    """Refuse an empty value, as of an unset variable: it would choose everything."""
    if not text:
        raise ArgumentTypeError("is empty, which would choose everything; omit the flag for that")
    return text


def person_of(flags: Namespace) -> dict[str, Any]:
    """Return the person and the reason, as the verbs take them."""
    by = flags.by
    if by is None:
        try:
            by = getpass.getuser()
        except (KeyError, OSError):  # A container may run as a user id that has no name.
            by = f"uid {os.getuid()}"
    return {"by": by, "reason": flags.reason}
