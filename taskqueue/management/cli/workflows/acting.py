"""A subcommand of `workflows` for each verb on workflows."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from taskqueue.management.cli.acting import Lines, for_each
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    PERSON,
    Subcommand,
    argument,
    not_empty,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import any_json

# The flags for the parameters of the verbs.
PARAMETERS = {
    "from_step": argument(
        "--from-step", type=not_empty, metavar="NAME",
        help="also run this step and all that depend on it again, however they ended",
    ),
    "step": argument("--step", type=not_empty, metavar="NAME", required=True, help="a failed step"),
    "value": argument(
        "--value", type=any_json, metavar="JSON", required=True,
        help="""its result, such as 42 or '{"rows": 0}'""",
    ),
}  # fmt: skip


def _action(verb: WorkflowVerb) -> Subcommand:
    """Return the subcommand for a verb; each workflow that refuses it is reported."""

    def attempt(key: str, given: dict[str, Any]) -> dict[str, Any]:
        is_gone = verb.act(key, **given)
        return {} if is_gone is None else {"gone": is_gone}

    def text_of(line: dict[str, Any]) -> str:
        if "error" in line:
            return f"{line['id']}  {line['error']}"
        told = verb.told(line["id"])
        return told if line.get("gone", True) else f"{told} Workers delete the rest of its tasks."

    flags_of_verb = [PARAMETERS[name] for name in verb.parameters]

    @subcommand(
        verb.name, verb.help, argument("ids", nargs="+", metavar="ID"), *flags_of_verb, *PERSON
    )
    def act(flags: Namespace, output: Output) -> None:
        def tell(lines: Lines) -> None:
            output.say(map(text_of, lines), {"action": verb.name, "workflows": lines})

        given = {name: getattr(flags, name) for name in verb.parameters} | person_of(flags)
        for_each(flags.ids, lambda key: attempt(key, given), output, key="id", tell=tell)

    return act


VERBS = [_action(verb) for verb in WORKFLOW_VERBS.values()]
