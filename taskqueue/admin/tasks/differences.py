"""The differences between the arguments of a retry and those of the task that it retries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import Viewer, visible_arguments

MOST, LONGEST = 50, 200


class Difference(NamedTuple):
    """A value that was changed, added or taken away, as JSON; empty: there was none."""

    path: str
    before: str
    now: str


def differences(task: Task, viewer: Viewer) -> list[Difference]:
    """Return how the arguments differ, as far as the viewer may see both calls."""
    if task.retry_of_id is None:
        return []
    rows = Task.objects.using(database_alias()).filter(pk=task.retry_of_id)
    first = rows.only("name", "args", "kwargs").first()
    if first is None:
        return []
    calls = [visible_arguments(each.name, each.args, each.kwargs, viewer) for each in (first, task)]
    shown = [dict(_values(call)) for call in calls if call is not None]
    if len(shown) < 2:
        return []
    before, now = shown
    paths = list(dict.fromkeys([*before, *now]))
    changed = (path for path in paths if before.get(path) != now.get(path))
    return [
        Difference(path, _cut(before.get(path, "")), _cut(now.get(path, "")))
        for path in islice(changed, MOST)
    ]


def _values(call: Any) -> Iterator[tuple[str, str]]:
    """Yield each value that is neither an object nor a list with items, by its path."""
    for place, value in enumerate(call.args):
        yield from _inside(str(place), value)
    for name, value in call.kwargs.items():
        yield from _inside(name, value)


def _inside(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _inside(f"{path}.{key}", item)
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from _inside(f"{path}.{place}", item)
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
