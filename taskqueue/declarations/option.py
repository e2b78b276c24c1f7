"""The declaration of an option: its kind, where it can be given, and how it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Literal

from taskqueue.conf import Settings
from taskqueue.declarations.option_kinds import Kind


class Use(Flag):
    """The places where an option can be given."""

    # In `@task(...)`.
    TASK = auto()
    # In `.using(...)`.
    USING = auto()
    # In the options of a schedule.
    SCHEDULE = auto()
    # In a request to the REST API.
    REST = auto()
    # In a change of a task that has not finished.
    CHANGE = auto()
    # In a change of a task that waits, and does not run.
    EDIT = auto()


ENQUEUE = Use.TASK | Use.USING | Use.SCHEDULE | Use.REST
ALWAYS = ENQUEUE | Use.CHANGE
EDITABLE = ENQUEUE | Use.EDIT
NOT_SCHEDULED = Use.TASK | Use.USING | Use.REST


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option, as every part of the package knows it."""

    kind: Kind
    use: Use
    default: Any = None
    name: str = ""
    # How a task carries it as it is: in the column of its name, or in the snapshot for the worker.
    #
    # Empty: it has no such place, or is translated first (`engine.specs`).
    carried: Literal["column", "snapshot", ""] = ""
    # The setting that fills the column if the option is None.
    setting: str = ""
    # The bound of REST requests, in seconds or as a number.
    #
    # Whoever may enqueue over REST must not be able to keep a worker, a lease or a row busy for
    # years. Python code is not bounded by it.
    rest_highest: float | None = None
    help: str = ""
    # Of its own field in the admin's forms, and on the page of a definition; without one it is
    # among the further options.
    label: str = ""

    def check(self, value: Any) -> Any:
        """Return the value in its normal form. Raises `InvalidTask`."""
        if value is None and self.default is None:
            return None
        return self.kind.check(self.name, value)

    def column_value(self, value: Any, settings: Settings) -> Any:
        """Return the value of the task's column for a checked value."""
        return getattr(settings, self.setting) if value is None and self.setting else value


def gettext_noop(text: str) -> str:
    """Mark a text for the translators, as Django's does, which needs settings for it."""
    return text


def option(kind: Kind, use: Use = ENQUEUE, default: Any = None, **details: Any) -> Any:
    """Declare an option as a field of `Options`."""
    described = Option(kind=kind, use=use, default=default, **details)
    if default == {}:
        return field(default_factory=dict, metadata={"option": described})
    return field(default=default, metadata={"option": described})
