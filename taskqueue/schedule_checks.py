"""System checks of the schedules that the code declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from taskqueue.definitions import registry
from taskqueue.exceptions import InvalidSchedule
from taskqueue.scheduled import named

_are_skipped: ContextVar[bool] = ContextVar("taskqueue_schedule_checks_are_skipped", default=False)


@contextmanager
def definitions_unread() -> Iterator[None]:
    """Leave these checks out: they import the definitions, which a worker's parent does not."""
    token = _are_skipped.set(True)
    try:
        yield
    finally:
        _are_skipped.reset(token)


def check_schedules(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Every declared schedule can work, and has a name of its own."""
    if _are_skipped.get():
        return []
    try:
        definitions = registry.all()
    except Exception as error:  # What a module of the project raises when it is imported.
        return [
            Warning(
                "Schedules were not checked, for the definitions cannot be imported: "
                f"{type(error).__name__}: {error}",
                hint="Import the `tasks` modules of the installed apps one by one.",
                id="taskqueue.W002",
            )
        ]
    messages: list[CheckMessage] = []
    places: dict[str, str] = {}
    for definition in definitions:
        for name, scheduled in named(definition):
            try:
                scheduled.check(definition)
            except InvalidSchedule as error:
                messages.append(
                    Error(f"The schedule {name!r} cannot work: {error}", id="taskqueue.E004")
                )
            if not isinstance(name, str):
                continue
            if name in places:
                messages.append(
                    Error(
                        f"Two schedules are named {name!r}: of {places[name]} and "
                        f"{definition.name}.",
                        hint="Give one of them another name: Scheduled(rule, name=...).",
                        id="taskqueue.E005",
                    )
                )
            places.setdefault(name, definition.name)
    return messages
