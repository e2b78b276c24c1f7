"""`schedules pause`, `resume`, `run` and `delete`: a verb on schedules by their names."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from taskqueue import schedules
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.base import TROUBLE, Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output, told
from taskqueue.management.cli.selection import Lines, for_each
from taskqueue.models import Occurrence


def _add_names(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME")
    add_person(parser)


def _action(name: str, help: str, verb: Callable[..., Any], done: str) -> Subcommand:
    def run(flags: Namespace, output: Output) -> None:
        _act(flags, output, action=name, verb=verb, done=done)

    return Subcommand(name=name, help=help, add_arguments=_add_names, run=run)


def _act(
    flags: Namespace, output: Output, *, action: str, verb: Callable[..., Any], done: str
) -> None:
    """Use a verb on each; raises CommandError if one of them was refused."""

    def attempt(name: str) -> dict[str, Any]:
        try:
            return _told(verb(name, **person_of(flags)))
        except (TaskQueueError, *TROUBLE):
            raise
        except Exception as error:  # A rule that is stored may raise anything.
            raise TaskQueueError(f"{type(error).__name__}: {told(str(error))}") from error

    def tell(lines: Lines) -> None:
        text = "\n".join(f"{line['name']}  {_word(line, done)}" for line in lines)
        output.say(text, {"action": action, "schedules": lines})

    for_each(flags.names, attempt, key="name", output=output, tell=tell)


def _told(answer: Any) -> dict[str, Any]:
    """What a verb answers: nothing, or the occurrence that it made."""
    if not isinstance(answer, Occurrence):
        return {}
    return {"status": answer.status, "nominal_at": answer.nominal_at, "task": answer.task_id}


def _word(line: dict[str, Any], done: str) -> str:
    if "error" in line:
        return str(line["error"])
    if "status" not in line:
        return done
    return f"{done}: task {line['task']}" if line["task"] else "waits until the run before it ends"


PAUSE = _action(
    "pause", "let nothing more of them run; what runs goes on", schedules.pause,
    "paused; what runs goes on",
)  # fmt: skip
RESUME = _action(
    "resume", "end their pause; what passed meanwhile is not made up for", schedules.resume,
    "resumed",
)  # fmt: skip
RUN = _action("run", "run them now, besides their rules", schedules.run_now, "enqueued")
DELETE = _action(
    "delete", "delete them with their history; their tasks stay", schedules.delete, "deleted"
)
