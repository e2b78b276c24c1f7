"""`schedules pause`, `resume`, `run` and `delete`: a verb on schedules by their names."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from taskqueue.engine.control.verb import Verb
from taskqueue.engine.verbs import SCHEDULE_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.base import TROUBLE, Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output, one_line
from taskqueue.management.cli.selection import Lines, for_each
from taskqueue.models import Occurrence


def _add_names(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME")
    add_person(parser)


def _action(verb: Verb, *, called: str = "") -> Subcommand:
    """The subcommand for a verb on schedules; each prints whether it was refused."""

    def run(flags: Namespace, output: Output) -> None:
        _act(flags, output, called or verb.name, verb)

    return Subcommand(name=called or verb.name, help=verb.help, add_arguments=_add_names, run=run)


def _act(flags: Namespace, output: Output, action: str, verb: Verb) -> None:
    """Use a verb on each; raises CommandError if one of them was refused."""

    def attempt(name: str) -> dict[str, Any]:
        try:
            return _told(verb.act(name, **person_of(flags)))
        except (TaskQueueError, *TROUBLE):
            raise
        except Exception as error:  # A rule that is stored may raise anything.
            raise TaskQueueError(f"{type(error).__name__}: {one_line(str(error))}") from error

    def tell(lines: Lines) -> None:
        text = "\n".join(_text(line, verb) for line in lines)
        output.say(text, {"action": action, "schedules": lines})

    for_each(flags.names, attempt, key="name", output=output, tell=tell)


def _told(answer: Any) -> dict[str, Any]:
    """What a verb answers: nothing, or the occurrence that it made."""
    if not isinstance(answer, Occurrence):
        return {}
    return {"status": answer.status, "nominal_at": answer.nominal_at, "task_id": answer.task_id}


def _text(line: dict[str, Any], verb: Verb) -> str:
    if "error" in line:
        return f"{line['name']}  {line['error']}"
    if "status" not in line:
        return verb.told(line["name"])
    if line["task_id"] is None:
        return f"{line['name']}  waits until the run before it ends"
    return f"{line['name']}  enqueued: task {line['task_id']}"


PAUSE, RESUME, DELETE = (_action(SCHEDULE_VERBS[name]) for name in ("pause", "resume", "delete"))
RUN = _action(SCHEDULE_VERBS["run_now"], called="run")
