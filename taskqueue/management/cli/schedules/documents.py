"""`schedules export` and `schedules import`: schedules as one JSON document."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from django.core.management.base import CommandError

from taskqueue import schedules
from taskqueue.engine.schedules.documents import Imported
from taskqueue.exceptions import InvalidSchedule
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.acting import load_tasks
from taskqueue.management.cli.subcommand import PERSON, argument, person_of, subcommand
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.schedule import visible_arguments_of

STANDARD_INPUT = "-"
DONE = {"create": "created", "change": "changed", "none": "unchanged"}
WOULD = {"create": "to create", "change": "to change", "none": "unchanged"}


@subcommand(
    "export",
    "the schedules that were created at run time, as a document for `schedules import`",
    argument("names", nargs="*", metavar="NAME", help="only these"),
    example="schedules export > schedules.json",
)
def export(flags: Namespace, output: Output) -> None:
    load_tasks()  # The definitions say which arguments are sensitive.
    document = schedules.export_document(
        flags.names or None, arguments_of=lambda row: visible_arguments_of(row, COMMAND_LINE)
    )
    output.say(json.dumps(document, indent=2, ensure_ascii=False), document)


@subcommand(
    "import",
    "create and change schedules so that they are as a document has them: all or none",
    argument("file", metavar="FILE", help=f"a document of `schedules export`; {STANDARD_INPUT}: "
             "standard input"),
    argument("--dry-run", action="store_true", help="only report what would change"),
    *PERSON,
    example="schedules import schedules.json --dry-run",
)  # fmt: skip
def import_(flags: Namespace, output: Output) -> None:
    document = _read(flags.file)
    load_tasks()
    try:
        done = schedules.import_document(document, dry_run=flags.dry_run, **person_of(flags))
    except InvalidSchedule as error:
        raise CommandError(f"Nothing was imported. {error}") from None
    words = WOULD if flags.dry_run else DONE
    lines = [line for each in done for line in _lines(each, words)]
    output.say(lines or "nothing to import", {"dry_run": flags.dry_run, "schedules": done})


def _read(path: str) -> Any:
    try:
        if path == STANDARD_INPUT:
            return json.load(sys.stdin)
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not valid JSON: {error}") from None


def _lines(imported: Imported, words: dict[str, str]) -> list[str]:
    changes = [
        f"  {field}: {json.dumps(before)} to {json.dumps(after)}"
        for field, (before, after) in imported.changes.items()
    ]
    return [f"{imported.name}  {words[imported.action]}", *changes]
