"""`manage.py taskqueue …`: view and control tasks, queues, workers and schedules."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import override

from taskqueue.management.cli import SUBCOMMANDS
from taskqueue.management.cli.cells import one_line
from taskqueue.management.cli.errors import refusals_reported, refuse_what_is_not_text
from taskqueue.management.cli.output import Output, add_format, finished, hints_told_once

EXIT_CODES = (
    "Exits with 0 if it is done, 1 if it is refused, not found or unhealthy, 2 for wrong usage, "
    "3 if it is done but the standard output cannot be written."
)


class Command(BaseCommand):
    """Finds the subcommand and runs it."""

    help = "View and control tasks, queues, workers and schedules."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.epilog = EXIT_CODES
        parser.allow_abbrev = False
        chosen = parser.add_subparsers(dest="subcommand", required=True, metavar="subcommand")
        for subcommand in SUBCOMMANDS:
            add_format(subcommand.add_to(chosen))

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except KeyboardInterrupt:
            self.stderr.write("Interrupted.")
            # By the signal, so that a shell leaves its own loop as well; without a traceback.
            sys.excepthook = lambda *error: None
            raise

    def handle(self, *args: Any, **flags: Any) -> None:
        is_closed = getattr(self.stdout, "_out", self.stdout) is None
        output = Output(None if is_closed else self.stdout, form=flags["format"], note=self._note)
        # One language for scripts, whatever the project's is.
        with override("en"), hints_told_once(), refusals_reported(), finished(output.finish):
            refuse_what_is_not_text(flags)
            flags["run"](Namespace(**flags), output)

    def _note(self, text: str) -> None:
        self.stderr.write(one_line(text), style_func=str)  # Not in the colour of errors.
