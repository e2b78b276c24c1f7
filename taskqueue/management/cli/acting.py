"""A subcommand for each verb on tasks, made from the table of verbs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from taskqueue import control
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.bulk import BulkOutcome, act_on_many, refused_of_workflows
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.control.mutable_options import check_changes
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.lost import lost_attempts
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS
from taskqueue.exceptions import InvalidArguments, TaskQueueError, TransitionRefused
from taskqueue.management.cli.errors import TROUBLE, sentence_of, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    PERSON,
    Argument,
    Subcommand,
    group,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import (
    CALL,
    SELECTION,
    call_of,
    filter_of,
    has_filters,
    options_flag,
    options_of,
    point_in_time,
)
from taskqueue.monitoring.outermost import outermost_workflows

MAY_RUN = (
    "Its code may still be running if the worker's host is only disconnected, until the worker "
    "reaches the database again."
)
EXAMPLES = {
    "retry": "retry --query 'status:failed error:SMTPException' --dry-run",
    "delete": "delete --query 'status:failed name:shop.*' --dry-run",
    "update": "update 01a2022f-c607-74e3-a122-9f8b03c681f8 --args '[43]' --set deadline=2h",
}
# The flags for the parameters of the verbs.
PARAMETERS: dict[str, Callable[[bool], Argument]] = {
    "run_after": lambda required: point_in_time(required=required),
    "changes": lambda required: options_flag(
        "--set",
        "such as priority=5, timeout=30s, queue_name=mail or worker_names='[\"w1\"]'; null stands "
        "for the setting, or for none; priority and queue_name always have a value; deadline, "
        "expires_after and metadata are for tasks that wait",
    ),
}


def _subcommand(verb: TaskVerb) -> Subcommand:
    """Return the subcommand that is made only from a row of the table."""
    names = [parameter.name for parameter in verb.parameters]
    flags_of_verb = [PARAMETERS[name](True) for name in names]
    if verb.name in ("retry", "update"):
        flags_of_verb.append(group("in place of the old arguments", *CALL))

    @subcommand(
        verb.name.replace("_", "-"),
        verb.help,
        *SELECTION,
        *flags_of_verb,
        *PERSON,
        example=EXAMPLES.get(verb.name, ""),
    )
    def act(flags: Namespace, output: Output) -> None:
        arguments: dict[str, Any] = {}
        if "run_after" in names:
            arguments["run_after"] = flags.run_after
        call = call_of(flags)
        if "changes" in names:
            arguments["changes"] = options_of(flags, "--set")
            if not (arguments["changes"] or call):
                raise usage_error("Give --set, --args or --kwargs.")
            # Changes that no task can have are refused before they are tried on any.
            if arguments["changes"]:
                check_changes(arguments["changes"])
        by_filter = has_filters(flags) or flags.all
        if call and len(flags.ids) != 1:
            raise usage_error("--args and --kwargs are for one task, given by its id.")
        if bool(flags.ids) == by_filter:
            either = "not both" if by_filter else "or --all for every task"
            raise usage_error(f"Give either ids, or flags that choose tasks, {either}.")
        for text in flags.ids:
            if ":" in text:  # No id has a colon, and each qualifier of a search does.
                raise usage_error(f"To choose tasks by a search, write --query {quote(text)}.")
        if by_filter:
            _act_on_many(flags, output, verb, arguments)
        elif flags.dry_run:
            raise usage_error("--dry-run is for flags that choose tasks, not for ids.")
        elif call:
            name = "retry_with" if verb.name == "retry" else verb.name
            act_on_ids(flags, output, verb.name, partial(_act_with, name, call | arguments))
        else:
            one = partial(verb.act, **arguments)
            act_on_ids(flags, output, verb.name, one, ends_attempt=verb.ends_attempt)

    return act


def _act_with(verb: str, arguments: dict[str, Any], task_id: UUID, **who: Any) -> Any:
    try:
        return TASK_VERBS[verb].act(task_id, **arguments, **who)
    except InvalidArguments as error:  # No task can have these arguments.
        raise usage_error(str(error)) from None


# In the order of the table; `stop` is for workers too.
VERBS = [_subcommand(verb) for name, verb in BULK_VERBS.items() if name != "stop"]


def act_on_ids(
    flags: Namespace,
    output: Output,
    called: str,
    act: Callable[..., Any],
    *,
    ends_attempt: bool = False,
) -> None:
    """Apply a verb to the tasks with these ids. Raises CommandError if one of them was refused."""

    def attempt(text: str) -> dict[str, Any]:
        task_id = id_of(text)
        lost = lost_attempts(project_connection(), [task_id]) if ends_attempt else []
        if lost and not flags.yes:
            workers = ", ".join(repr(each.worker) for each in lost)
            raise TransitionRefused(
                f"Task {task_id} is held by a lost worker: {workers}. {MAY_RUN} "
                "Nothing was changed: add --yes to end the attempt at once."
            )
        match act(task_id, **person_of(flags)):
            case UUID() as new_id:
                told: dict[str, Any] = {"new_id": str(new_id)}
            case bool() as is_changed:
                told = {"changed": is_changed}
            case str() as status:
                told = {"status": status}
            case _:
                told = {}
        return told | {"worker_lost": True} if lost else told

    def tell(lines: Lines) -> None:
        text = (f"{line['id']}  {called}: {_word(line)}" for line in lines)
        output.say(text, {"verb": called, "tasks": lines})

    for_each(flags.ids, attempt, output, key="id", tell=tell)


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
    if flags.yes and not flags.dry_run:
        outcome = act_on_many(which, verb.name, **arguments, **person_of(flags))
        tense, warning = "done", ""
    else:
        outcome = control.dry_run(which, verb.name, **arguments)
        tense, warning = "would be done", _warning_of_many(which, verb.name)
        if not flags.dry_run:
            raise usage_error(
                f"Tasks that match: {outcome.matched:,}; that allow it: {outcome.done:,}.{warning} "
                "Nothing was changed: add --yes to confirm, or --dry-run to only count."
            )
    why = _why_refused(which, verb, outcome)
    is_refused = bool(outcome.refused) and not (outcome.done or flags.dry_run)
    after = warning + ("" if is_refused else why)
    document = {"verb": verb.name, "dry_run": flags.dry_run, **outcome._asdict()}
    output.say(
        f"{verb.name}: {outcome.matched} matched, {outcome.done} {tense}, {outcome.refused} refused"
        + (f".{after}" if after else ""),
        document | {"refused": outcome.refused},
    )
    if is_refused:
        raise CommandError(why.strip())


def _why_refused(which: control.TaskFilter, verb: TaskVerb, outcome: BulkOutcome) -> str:
    """Return why tasks were refused; empty if it goes without saying, because of their status."""
    if not outcome.refused:
        return ""
    owned, workflow = refused_of_workflows(which, verb.name)
    if workflow is None:
        return "" if outcome.done else f" {verb.allowed}"
    action = verb.name if verb.name in WORKFLOW_VERBS else "show"
    whole = outermost_workflows([workflow])[workflow]
    return (
        f" Refused because they belong to workflows: {owned:,}. See the workflow of one of them: "
        f"manage.py taskqueue workflows {action} {whole}"
    )


def _warning_of_many(which: control.TaskFilter, verb: str) -> str:
    """Return the warning before a bulk action; empty if no lost worker holds a task."""
    number = control.count_held_by_lost(which, verb)
    if not number:
        return ""
    return f" {number} of them are held by lost workers, and their attempts end at once. {MAY_RUN}"


# The result for each key: whether it was `done`, and the `error` if not.
Lines = list[dict[str, Any]]


def for_each(
    keys: Sequence[str],
    attempt: Callable[[str], dict[str, Any]],
    output: Output,
    *,
    key: str,
    tell: Callable[[Lines], None],
) -> None:
    """Try it for each key and print the results. Raises CommandError if one was refused.

    If there is only one key, a refusal is printed only as an error. If something ends it early, the
    results so far are printed.
    """
    lines: Lines = []
    try:
        for name in keys:
            try:
                lines.append({key: name, "done": True, **attempt(name)})
            except (TaskQueueError, *TROUBLE) as error:
                said = sentence_of(error) if isinstance(error, TROUBLE) else str(error)
                lines.append({key: name, "done": False, "error": said})
    finally:
        if lines and (len(keys) > 1 or lines[0]["done"] or output.is_json):
            tell(lines)
    refused = [line["error"] for line in lines if not line["done"]]
    if refused:
        were = "was" if len(refused) == 1 else "were"
        raise CommandError(refused[0] if len(lines) == 1 else f"{len(refused)} {were} refused.")
