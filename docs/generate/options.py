"""Where each option may be given, from its declaration."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from docs.generate.markdown import code, table
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.options import OPTIONS
from taskqueue.declarations.time_kinds import Seconds, When

HEADS = {
    Use.TASK: "`@task`", Use.USING: "`.using`", Use.SCHEDULE: "schedule", Use.REST: "REST",
    Use.CHANGE: "change",
}  # fmt: skip


def uses() -> str:
    """Return a table of the places in which each option may be given."""
    rows = [
        (
            code(name),
            *(_use(option, use) for use in HEADS),
            _bound(option),
        )
        for name, option in OPTIONS.items()
    ]
    return table(["option", *HEADS.values(), "most over REST"], rows)


def _use(option: Option, use: Use) -> str:
    if use is Use.CHANGE and Use.EDIT in option.use:
        return "while it waits"
    return "yes" if use in option.use else ""


def _bound(option: Option) -> str:
    highest: Any = option.rest_highest
    if highest is None:
        return ""
    if isinstance(option.kind, Seconds | When) or highest > 86_400:
        days, seconds = divmod(timedelta(seconds=highest).total_seconds(), 86_400)
        return f"{days:g} day{'s' * (days > 1)}" if days else f"{seconds / 3600:g} hours"
    return f"{highest:,g}"
