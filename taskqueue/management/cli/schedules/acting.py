"""`schedules pause`, `resume`, `run` and `delete`: a verb on schedules by their names."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError

from taskqueue import schedules
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.base import Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.rows import told
from taskqueue.management.cli.trouble import TROUBLE, sentence_of
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
    lines: list[dict[str, Any]] = []
    for name in flags.names:
        try:
            lines.append({"name": name, "done": True, **_told(verb(name, **person_of(flags)))})
        except TaskQueueError as error:
            if isinstance(error, ValueError):
                raise
            lines.append({"name": name, "done": False, "error": str(error)})
        except TROUBLE as error:
            # What was done to the schedules before is to be told.
            lines.append({"name": name, "done": False, "error": sentence_of(error)})
        except Exception as error:  # A rule that is stored may raise anything.
            odd = f"{type(error).__name__}: {told(str(error))}"
            lines.append({"name": name, "done": False, "error": odd})
    refused = [line for line in lines if not line["done"]]
    if len(lines) > 1 or not refused or output.is_json:
        text = "\n".join(f"{line['name']}  {_word(line, done)}" for line in lines)
        output.say(text, {"action": action, "schedules": lines})
    if refused:
        alone = len(lines) == 1
        were = "was" if len(refused) == 1 else "were"
        raise CommandError(refused[0]["error"] if alone else f"{len(refused)} {were} refused.")


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
