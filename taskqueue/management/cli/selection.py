"""Which tasks a subcommand is about: ids, or all that fit flags."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.utils import timezone

from taskqueue.core.states import TaskStatus
from taskqueue.engine.control import TaskFilter, dry_run
from taskqueue.engine.control.bulk import act_on_many
from taskqueue.engine.control.filter_fields import LIST, MOMENT
from taskqueue.engine.control.filters import FILTERS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.management.cli.base import given, person_of, usage_error
from taskqueue.management.cli.lost import held_by_lost, refuse_to_end, warning_of_many
from taskqueue.management.cli.one_by_one import Lines, each_of
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import past
from taskqueue.monitoring.searching import parse
from taskqueue.results import identifier_of

NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})
ALL_AND_SOME = "--all is for every task: leave it out, or what chooses among them."
NOTHING_SAID = "The query says nothing to choose tasks by."
BY_FLAG = {name: each for name, each in FILTERS.items() if each.flag}
"""The filters that have a flag of their own."""


def add_filters(parser: ArgumentParser) -> None:
    """Add flags that choose tasks by their properties."""
    group = parser.add_argument_group("which tasks")
    group.add_argument(
        "--query", type=given, metavar="QUERY",
        help="as in the admin's search, such as 'status:failed name:mail.*'; combined with AND",
    )  # fmt: skip
    for name, filter in BY_FLAG.items():
        options: dict[str, Any] = {"dest": name, "help": filter.help}
        if filter.kind is LIST:
            options |= {"action": "append", "choices": [status.value for status in TaskStatus]}
            options["help"] += "; may be repeated"
        elif filter.kind is MOMENT:
            options |= {"type": past, "metavar": "TIME"}
            options["help"] += ", such as 2026-03-01T12:00+00:00, or 2h for two hours ago"
        else:
            options |= {"type": given, "metavar": filter.flag.strip("-").upper()}
        group.add_argument(filter.flag, **options)


def add_selection(parser: ArgumentParser) -> None:
    """Ids, or flags for many."""
    parser.add_argument("ids", nargs="*", metavar="ID")
    add_filters(parser)
    group = parser.add_argument_group("many at once")
    group.add_argument("--all", action="store_true", help="every task, with no other choice")
    group.add_argument("--dry-run", action="store_true", help="only count")
    group.add_argument(
        "--yes", action="store_true", help="do it; of ids, also where a lost worker holds the task"
    )


def filter_of(flags: Namespace, *, everything: bool) -> TaskFilter:
    """The filter that the flags describe. Raises ValueError."""
    chosen = {name: value for name in BY_FLAG if (value := getattr(flags, name))}
    searched = parse(flags.query, now=timezone.now()).which.given if flags.query else {}
    if twice := sorted(chosen.keys() & searched.keys()):
        raise usage_error(f"Both the query and a flag say {', '.join(twice)}.")
    if everything == bool({**searched, **chosen}.keys() - {"everything"}):
        raise usage_error(ALL_AND_SOME if everything else NOTHING_SAID)
    fields: dict[str, Any] = {**searched, **chosen, "everything": everything}
    return TaskFilter(**fields)


def has_filters(flags: Namespace) -> bool:
    """Whether tasks are chosen by what they are."""
    return bool(flags.query) or any(getattr(flags, name) for name in BY_FLAG)


def act(
    flags: Namespace,
    output: Output,
    verb: TaskVerb,
    *,
    one: Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] = NO_ARGUMENTS,
) -> None:
    """Use a verb with its arguments on the tasks with these ids, or on all that match the flags.

    `one` does it to one task in place of the verb. Raises CommandError if one of the ids was
    refused; of many, the refused are counted.
    """
    by_filter = has_filters(flags) or flags.all
    if bool(flags.ids) == by_filter:
        either = "not both" if by_filter else "or --all for every task"
        raise usage_error(f"Give either ids, or flags that choose tasks, {either}.")
    if by_filter:
        _act_on_many(flags, output, verb, arguments)
    elif flags.dry_run:
        raise usage_error("--dry-run counts what fits flags; ids are given already.")
    else:
        act_on_ids(flags, output, verb, one=one or partial(verb.act, **arguments))


def act_on_ids(
    flags: Namespace, output: Output, verb: TaskVerb, *, one: Callable[..., Any]
) -> None:
    """Use a verb on the tasks with these ids; raises CommandError if one of them was refused."""

    def attempt(text: str) -> dict[str, Any]:
        task_id = identifier_of(text)
        if not verb.ends_attempt or _makes_another(flags):
            return _told(one(task_id, **person_of(flags)))
        held = held_by_lost(task_id)
        if held and not flags.yes:
            refuse_to_end(task_id, held)
        told = _told(one(task_id, **person_of(flags)))
        return told | {"worker_lost": True} if held else told

    def tell(lines: Lines) -> None:
        text = "\n".join(f"{line['id']}  {verb.name}: {_word(line)}" for line in lines)
        output.say(text, {"verb": verb.name, "tasks": lines})

    each_of(flags.ids, attempt, key="id", output=output, tell=tell)


def _makes_another(flags: Namespace) -> bool:
    """Whether a retry with other arguments is asked for, which leaves the task as it is."""
    given = (getattr(flags, name, None) for name in ("new_args", "new_kwargs"))
    return any(each is not None for each in given)


def _told(done: Any) -> dict[str, Any]:
    """What a verb answers: a status, the id of the task that it made, whether anything changed."""
    if isinstance(done, UUID):
        return {"new_id": str(done)}
    if isinstance(done, bool):
        return {"changed": done}
    return {"status": done} if isinstance(done, str) else {}


def _word(line: dict[str, Any]) -> str:
    if line.get("changed") is False:
        return "nothing to change"
    if line.get("status") == TaskStatus.RUNNING:
        return "asked to stop"
    word = str(line.get("error") or line.get("status") or line.get("new_id") or "done")
    return f"{word} (its worker was lost)" if line.get("worker_lost") else word


def _act_on_many(
    flags: Namespace, output: Output, verb: TaskVerb, arguments: Mapping[str, Any]
) -> None:
    which = filter_of(flags, everything=flags.all)
    if not (flags.yes or flags.dry_run):
        matched, would = dry_run(which, verb.name, **arguments)
        raise usage_error(
            f"{matched} tasks match, {would} of them allow it.{warning_of_many(which, verb.name)} "
            "Nothing was done: say --yes to do it, or --dry-run to only count."
        )
    outcome = (
        dry_run(which, verb.name, **arguments)
        if flags.dry_run
        else act_on_many(which, verb.name, **arguments, **person_of(flags))
    )
    warning = warning_of_many(which, verb.name) if flags.dry_run else ""
    tense = "would be done" if flags.dry_run else "done"
    counts = {**outcome._asdict(), "refused": outcome.refused}
    output.say(
        f"{verb.name}: {outcome.matched} matched, {outcome.done} {tense}, {outcome.refused} refused"
        + (f".{warning}" if warning else ""),
        {"verb": verb.name, "dry_run": flags.dry_run, **counts},
    )
