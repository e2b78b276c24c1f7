"""A reason why a task has its status: its code, and the values in its sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import Formatter
from typing import Any

from taskqueue.monitoring.why.codes import CLEARING, FULLER, SENTENCES, Code

Detail = str | int | datetime


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason why a task waits, is running, or ended."""

    # For programs: it never changes.
    code: Code
    # The queue, worker, definition, person or error that it is about.
    subject: str = ""
    # Since when or until when, as the sentence says.
    moment: datetime | None = None
    # Further values of the sentence; unknown ones are left out.
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """The first sentence of its code whose values are all known, as a template."""
        known = {name for name, value in self._values().items() if value not in (None, "")}
        sentences = (*FULLER.get(self.code, ()), SENTENCES[self.code])
        return next(each for each in sentences if _names_in(each) <= known)

    @property
    def sentence(self) -> str:
        """The reason in plain English; moments in UTC."""
        return self.template.format(**self.values(_plain))

    @property
    def clears_at(self) -> datetime | None:
        """When the reason ends by itself, if that is known; the sentence shows it too."""
        return self.moment if self.code in CLEARING else None

    def values(self, show: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the values for the template, each formatted by `show`."""
        return {name: show(value) for name, value in self._values().items()}

    def as_dict(self, message: str = "") -> dict[str, Any]:
        """`code`, `message`, `subject`, `moment`, `clears_at`, `details`.

        The message is the sentence, unless another one is given.
        """
        return {
            "code": self.code,
            "message": message or self.sentence,
            "subject": self.subject,
            "moment": self.moment,
            "clears_at": self.clears_at,
            "details": dict(self.details),
        }

    def _values(self) -> dict[str, Any]:
        return {**self.details, "subject": self.subject, "moment": self.moment}


# The most names in a sentence.
MOST_NAMED = 20


def listed(names: Sequence[str]) -> str:
    """Return names as a list, shortened if there are many."""
    return ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")


def _names_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return value


def because(
    code: Code, subject: str = "", moment: datetime | None = None, **details: Detail | None
) -> Reason:
    """Return a reason, without the details that are unknown."""
    known = {name: value for name, value in details.items() if value not in (None, "")}
    return Reason(code=code, subject=subject, moment=moment, details=known)
