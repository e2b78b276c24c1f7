"""A filter as JSON, to be stored with what is to be done to the tasks that fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.control.filters import TaskFilter, each_of, is_storable

MOMENTS = ("enqueued_after", "enqueued_before")
NUMBERS = ("lowest_priority", "highest_priority")
FLAGS = ("everything", "arguments_of_unknown")
PATHS = ("arguments", "metadata")
LISTS = ("ids", "statuses", "words")
TEXTS = (
    "name", "name_prefix", "queue_name", "worker", "error_class", "error_path", "error_text",
    "unique_key", "schedule",
)  # fmt: skip


def dump(which: TaskFilter) -> dict[str, Any]:
    """What is given, with each text that stands for several as a list."""
    return {name: _dumped(name, value) for name, value in which.given.items()}


def _dumped(name: str, value: Any) -> Any:
    if name in MOMENTS:
        return value.isoformat()
    if name in PATHS:
        return {path: list(each_of(texts)) for path, texts in value.items()}
    if name in NUMBERS or name in FLAGS:
        return value
    return [str(each) for each in each_of(value)]


def load(document: Any) -> TaskFilter:
    """The filter, checked as if somebody had typed it. Raises ValueError.

    A name that is unknown is refused: leaving it out would choose more tasks than were meant.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"A filter is stored as an object, not as {document!r}.")
    for name in document:
        if name not in READERS:
            hint = did_you_mean(str(name), READERS)
            raise ValueError(f"No filter has {name!r}.{hint}")
    return TaskFilter(**{name: READERS[name](name, value) for name, value in document.items()})


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(is_storable, value)):
        raise ValueError(f"{name} is stored as a list of texts, not as {value!r}.")
    return tuple(value)


def _paths(name: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is stored as an object, not as {value!r}.")
    return {str(path): _texts(name, texts) for path, texts in value.items()}


def _moment(name: str, value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is stored as a time in ISO 8601, not as {value!r}.") from None


def _number(name: str, value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{name} is stored as a whole number, not as {value!r}.")
    return value


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{name} is stored as true or false, not as {value!r}.")
    return value


READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys((*LISTS, *TEXTS), _texts),
    **dict.fromkeys(PATHS, _paths),
    **dict.fromkeys(MOMENTS, _moment),
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(FLAGS, _flag),
}
