"""One reason why a task stands where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import Formatter
from typing import Any

from taskqueue.monitoring.why.codes import SENTENCES

Detail = str | int | datetime


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What keeps a task from running, or holds it, or ended it."""

    code: str
    """One of `taskqueue.monitoring.why.codes`; these stay as they are."""
    subject: str = ""
    """The queue, worker, definition, person or error that it is about."""
    moment: datetime | None = None
    """Since when or until when, as the sentence says."""
    details: Mapping[str, Detail] = field(default_factory=dict)
    """What else the sentence names; unknown values are left out."""

    @property
    def template(self) -> str:
        """The sentence of its code without the values: the first whose values are all known."""
        known = {name for name, value in self._values().items() if value not in (None, "")}
        return next(each for each in SENTENCES[self.code] if _names_in(each) <= known)

    @property
    def sentence(self) -> str:
        """The reason in plain English; moments in UTC."""
        return self.template.format(**self.values(_plain))

    def values(self, show: Callable[[Any], Any]) -> dict[str, Any]:
        """What the template may name, each as `show` makes it."""
        return {name: show(value) for name, value in self._values().items()}

    def as_dict(self) -> dict[str, Any]:
        """`code`, `message` (the sentence), `subject`, `moment`, `details`."""
        return {
            "code": self.code,
            "message": self.sentence,
            "subject": self.subject,
            "moment": self.moment,
            "details": dict(self.details),
        }

    def _values(self) -> dict[str, Any]:
        return {**self.details, "subject": self.subject, "moment": self.moment}


def _names_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return value


def known(**details: Detail | None) -> dict[str, Detail]:
    """Details without those that are not known."""
    return {name: value for name, value in details.items() if value not in (None, "")}
