"""`enqueue-many`: tasks of any definitions from a file of JSON lines, all or none."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import options_from_json
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import PERSON, argument, person_of, subcommand
from taskqueue.results.by_hand import enqueue_batches_by_hand

# The most that one transaction writes.
MOST_LINES = 100_000
LONGEST_LINE = 4_000_000
Call = tuple[BaseDefinition[Any, Any], list[Any], dict[str, Any]]


@subcommand(
    "enqueue-many",
    "tasks from a file of JSON lines, in one transaction: all or none",
    argument(
        "file", metavar="FILE",
        help='a path, or - for the standard input; a line is such as {"name": "shop.tasks.send", '
        '"args": [42], "queue_name": "mail"}: besides name, args and kwargs any option of .using()',
    ),
    *PERSON,
    example="enqueue-many calls.jsonl --reason 'the import of May'",
)  # fmt: skip
def enqueue_many(flags: Namespace, output: Output) -> None:
    try:
        if flags.file == "-":
            calls = list(_calls(sys.stdin))
        else:
            with open(flags.file, encoding="utf-8") as lines:
                calls = list(_calls(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise usage_error(f"{flags.file} cannot be read: {error}") from None
    if not calls:
        raise usage_error(f"{flags.file} has no lines.")
    results = enqueue_batches_by_hand(calls, _alike(calls), **person_of(flags))
    names = ("id", "name", "status", "created", "updated")
    rows = [{name: getattr(result, name) for name in names} for result in results]
    new = sum(row["created"] for row in rows)
    others = f", {len(rows) - new} held by others" if new < len(rows) else ""
    output.say(f"{new} enqueued{others}", {"enqueued": new, "tasks": rows})


def _calls(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the call of each line. Raises CommandError, naming the line."""
    made: dict[str, BaseDefinition[Any, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if number > MOST_LINES:
            raise usage_error(f"The file has more than {MOST_LINES:,} lines: split it.")
        if not line.strip():
            continue
        try:
            yield _call(line, made)
        except (TaskQueueError, TypeError, ValueError, RecursionError) as error:
            raise usage_error(f"Line {number}: {error}") from None


def _call(line: str, made: dict[str, BaseDefinition[Any, Any]]) -> Call:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it is longer than {LONGEST_LINE:,} characters.")
    given = json.loads(line, object_pairs_hook=_once_each)
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise ValueError('it must be an object with the "name" of a definition.')
    name, args, kwargs = given.pop("name"), given.pop("args", []), given.pop("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError("args must be a list, and kwargs an object.")
    # One object for all lines with the same options, so that they are written together.
    key = json.dumps([name, given], sort_keys=True)
    if key not in made:
        made[key] = registry.get(name).using(**options_from_json(given))
    definition = made[key]
    definition.encode(args, kwargs)
    return definition, args, kwargs


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same name twice.")
    return found


def _alike(calls: list[Call]) -> list[list[int]]:
    """Return the positions of consecutive calls with the same definition and options."""
    batches: list[list[int]] = []
    for place, (definition, *_) in enumerate(calls):
        has_id = definition.options.id is not None
        if batches and not has_id and calls[batches[-1][0]][0] is definition:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches
