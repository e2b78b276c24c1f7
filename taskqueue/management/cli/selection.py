"""The tasks that a subcommand acts on: ids, or flags that choose many."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from taskqueue.control import TaskFilter, count_held_by_lost, dry_run
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.bulk import act_on_many
from taskqueue.engine.control.filter_fields import LIST, MOMENT
from taskqueue.engine.control.filters import FILTERS
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.lost import lost_attempts
from taskqueue.exceptions import TaskQueueError, TransitionRefused
from taskqueue.management.cli.base import TROUBLE, given, person_of, sentence_of, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import past
from taskqueue.monitoring.searching import parse

NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})
ALL_AND_SOME = "--all chooses every task: omit it, or the other flags that choose tasks."
NOTHING_SAID = "The query is empty: it chooses no tasks."
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
    """Add ids, or flags for many tasks."""
    parser.add_argument("ids", nargs="*", metavar="ID")
    add_filters(parser)
    group = parser.add_argument_group("many at once")
    group.add_argument("--all", action="store_true", help="choose every task")
    group.add_argument("--dry-run", action="store_true", help="only count, change nothing")
    group.add_argument(
        "--yes",
        action="store_true",
        help="confirm it; for ids, also where a lost worker holds the task",
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
        raise usage_error("--dry-run is for flags that choose tasks, not for ids.")
    else:
        act_on_ids(flags, output, verb, one=one or partial(verb.act, **arguments))


def act_on_ids(
    flags: Namespace, output: Output, verb: TaskVerb, *, one: Callable[..., Any]
) -> None:
    """Use a verb on the tasks with these ids; raises CommandError if one of them was refused."""

    def attempt(text: str) -> dict[str, Any]:
        task_id = id_of(text)
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

    for_each(flags.ids, attempt, key="id", output=output, tell=tell)


def _makes_another(flags: Namespace) -> bool:
    """Whether it is a retry with other arguments, which leaves the task unchanged."""
    given = (getattr(flags, name, None) for name in ("new_args", "new_kwargs"))
    return any(each is not None for each in given)


def _told(done: Any) -> dict[str, Any]:
    """Return the result of a verb: a status, the id of a new task, or whether anything changed."""
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
            "Nothing was changed: add --yes to confirm, or --dry-run to only count."
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


MAY_RUN = (
    "Its code may still be running if the worker's host is only disconnected, until the worker "
    "reaches the database again."
)


def held_by_lost(task_id: UUID) -> list[str]:
    """Return the lost workers that hold the task."""
    return [each.worker for each in lost_attempts(project_connection(), [task_id])]


def refuse_to_end(task_id: UUID, workers: Sequence[str]) -> NoReturn:
    """Raise `TransitionRefused`, with how to confirm."""
    raise TransitionRefused(
        f"Task {task_id} is held by a lost worker: {', '.join(map(repr, workers))}. {MAY_RUN} "
        "Nothing was changed: add --yes to end the attempt at once."
    )


def warning_of_many(which: TaskFilter, verb: str) -> str:
    """Return the warning before a bulk action; empty where no lost worker holds a task."""
    number = count_held_by_lost(which, verb)
    if not number:
        return ""
    return f" {number} of them are held by lost workers, and their attempts end at once. {MAY_RUN}"


Lines = list[dict[str, Any]]
"""The result for each name: whether it was `done`, and the `error` if not."""


def for_each(
    names: Sequence[str],
    attempt: Callable[[str], dict[str, Any]],
    *,
    key: str,
    output: Output,
    tell: Callable[[Lines], None],
) -> None:
    """Attempt it on each and print the results. Raises CommandError if one was refused.

    A single refusal is only an error. Whatever ends it early, the results so far are printed.
    """
    lines: Lines = []
    try:
        for line in _tried(names, attempt, key=key):
            lines.append(line)
    finally:
        if lines and (len(names) > 1 or lines[0]["done"] or output.is_json):
            tell(lines)
    refused = [line for line in lines if not line["done"]]
    if refused:
        alone = len(lines) == 1
        were = "was" if len(refused) == 1 else "were"
        raise CommandError(refused[0]["error"] if alone else f"{len(refused)} {were} refused.")


def _tried(
    names: Sequence[str], attempt: Callable[[str], dict[str, Any]], *, key: str
) -> Iterator[dict[str, Any]]:
    for name in names:
        try:
            line = {key: name, "done": True, **attempt(name)}
        except TaskQueueError as error:
            line = {key: name, "done": False, "error": str(error)}
        except TROUBLE as error:
            line = {key: name, "done": False, "error": sentence_of(error)}
        yield line
