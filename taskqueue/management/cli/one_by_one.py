"""A verb on each of several, one by one: one that is refused keeps nobody from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.core.management.base import CommandError

from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.base import TROUBLE, sentence_of
from taskqueue.management.cli.output import Output

Lines = list[dict[str, Any]]
"""Of each that was tried what it is called, whether it was `done`, and the `error` if not."""


def each_of(
    names: Sequence[str],
    attempt: Callable[[str], dict[str, Any]],
    *,
    key: str,
    output: Output,
    tell: Callable[[Lines], None],
) -> None:
    """Attempt it on each and tell how that went; raises CommandError if one of them was refused.

    One alone that is refused is told by the error. Whatever ends it early, what was done is told.
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
