"""The characters of names: of definitions, queues and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidTask

QUEUE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
DEFINITION_NAME = re.compile(r"[A-Za-z0-9_.:<>-]{1,255}")
TAG = re.compile(r"[a-z0-9._-]{1,32}")
MOST_TAGS = 8


def check_tags(name: str, value: object) -> tuple[str, ...]:
    """Return the tags, each once and sorted. Raises `InvalidTask`."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Iterable):
        raise InvalidTask(_(
            "{name} must be words such as {{'gpu', 'eu'}}, not {value!r}.", name=name, value=value
        ))  # fmt: skip
    tags = tuple(value)
    for tag in tags:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise InvalidTask(_(
                "{name}: a tag has 1 to 32 characters of a-z, 0-9, '.', '_' and '-', not {tag!r}.",
                name=name, tag=tag,
            ))  # fmt: skip
    if len(set(tags)) > MOST_TAGS:
        raise InvalidTask(_(
            "{name} must name at most {most_tags} tags, not {count}.",
            name=name, most_tags=MOST_TAGS, count=len(set(tags)),
        ))  # fmt: skip
    return tuple(sorted(set(tags)))
