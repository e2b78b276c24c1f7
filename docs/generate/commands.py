"""Flags of the commands, from their parsers."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator

from django.core.management import load_command_class

from docs.generate.markdown import code, table

DJANGO_S = {
    "help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color",
    "force_color", "skip_checks",
}  # fmt: skip
"""Flags of every command of Django."""


def worker_command() -> str:
    """Return the flags of `runworker`."""
    return _flags(_parser("runworker"))


def subcommands() -> str:
    """Return the subcommands of `taskqueue`, each with its arguments."""
    return "\n\n".join(_described(_parser("taskqueue"), "manage.py taskqueue"))


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of a command of taskqueue."""
    return _parser(name)


def _parser(name: str) -> ArgumentParser:
    return load_command_class("taskqueue", name).create_parser("manage.py", name)


def _described(parser: ArgumentParser, command: str) -> Iterator[str]:
    for action in parser._actions:
        if not isinstance(action, _SubParsersAction):
            continue
        for name, child in action.choices.items():
            depth = "#" * min(4, command.count(" ") + 1)
            yield f"{depth} {command.removeprefix('manage.py taskqueue')} {name}".replace("  ", " ")
            if child.description:
                yield _sentence(child.description)
            if flags := _flags(child):
                yield flags
            if child.epilog and child.epilog.startswith("For example: "):
                yield f"For example: {code(child.epilog.removeprefix('For example: '))}"
            yield from _described(child, f"{command} {name}")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _flags(parser: ArgumentParser) -> str:
    formatter = parser._get_formatter()
    rows = [
        (_spelling(action), formatter._expand_help(action) if action.help else "")
        for action in parser._actions
        if action.dest not in DJANGO_S
        and action.help != SUPPRESS
        and not isinstance(action, _SubParsersAction)
    ]
    return table(["argument", "meaning"], rows) if rows else ""


def _spelling(action: Action) -> str:
    """Return how the argument is written."""
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or (action.dest if not action.option_strings else ""))
        if action.choices is not None and not action.metavar:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        value = value or action.dest.upper()
    if not action.option_strings:
        return code(value)
    spellings = [code(f"{flag} {value}".strip()) for flag in action.option_strings]
    return ", ".join(spellings)
