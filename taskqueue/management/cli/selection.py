"""The tasks that a subcommand acts on: ids, or flags that choose many."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from django.utils import timezone

from taskqueue.control import TaskFilter
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.conditions import LIST, MOMENT, Described
from taskqueue.engine.control.filters import FILTERS
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.subcommand import Argument, argument, group, not_empty
from taskqueue.management.cli.values import past
from taskqueue.monitoring.searching.search import parse

ALL_AND_SOME = "--all chooses every task: omit it, or the other flags that choose tasks."
NOTHING_SAID = "The query is empty: it chooses no tasks."
# The filters that have a flag of their own.
BY_FLAG = {name: filter for name, filter in FILTERS.items() if filter.flag}


def _flag(name: str, filter: Described) -> Argument:
    if filter.kind is LIST:
        statuses = [status.value for status in TaskStatus]
        more = "; may be repeated"
        options: dict[str, Any] = {"action": "append", "choices": statuses}
    elif filter.kind is MOMENT:
        more = ", such as 2026-03-01T12:00+00:00, or 2h for two hours ago"
        options = {"type": past, "metavar": "TIME"}
    else:
        more = ""
        options = {"type": not_empty, "metavar": filter.flag.strip("-").upper()}
    return argument(filter.flag, dest=name, help=filter.help + more, **options)


FILTER_FLAGS = group(
    "which tasks",
    argument(
        "--query", type=not_empty, metavar="QUERY",
        help="as in the admin's search, such as 'status:failed name:mail.*'; combined with AND",
    ),
    *(_flag(name, filter) for name, filter in BY_FLAG.items()),
)  # fmt: skip
SELECTION = (
    argument("ids", nargs="*", metavar="ID"),
    FILTER_FLAGS,
    group(
        "many at once",
        argument("--all", action="store_true", help="choose every task"),
        argument("--dry-run", action="store_true", help="only count, change nothing"),
        argument(
            "--yes",
            action="store_true",
            help="confirm it; for ids, also where a lost worker holds the task",
        ),
    ),
)


def filter_of(flags: Namespace, *, everything: bool) -> TaskFilter:
    """Return the filter that the flags describe. Raises ValueError."""
    chosen = {name: value for name in BY_FLAG if (value := getattr(flags, name))}
    searched = parse(flags.query, now=timezone.now()).which.given if flags.query else {}
    if twice := sorted(chosen.keys() & searched.keys()):
        raise usage_error(f"Both the query and a flag give {', '.join(twice)}.")
    if everything == bool({**searched, **chosen}.keys() - {"everything"}):
        raise usage_error(ALL_AND_SOME if everything else NOTHING_SAID)
    fields: dict[str, Any] = {**searched, **chosen, "everything": everything}
    return TaskFilter(**fields)


def has_filters(flags: Namespace) -> bool:
    """Whether flags choose tasks by their properties."""
    return bool(flags.query) or any(getattr(flags, name) for name in BY_FLAG)
