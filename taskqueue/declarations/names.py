"""The characters of names: of definitions, queues and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
        raise InvalidTask(f"{name} must be words such as {{'gpu', 'eu'}}, not {value!r}.")
    tags = tuple(value)
    for tag in tags:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise InvalidTask(
                f"{name}: a tag has 1 to 32 characters of a-z, 0-9, '.', '_' and '-', not {tag!r}."
            )
    if len(set(tags)) > MOST_TAGS:
        raise InvalidTask(f"{name} must name at most {MOST_TAGS} tags, not {len(set(tags))}.")
    return tuple(sorted(set(tags)))
