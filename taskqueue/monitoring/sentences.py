"""Sentences about conditions, in English and for readers of other languages.

Code that judges marks the text with `gettext_noop`, and fills its gaps only with values.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any, NamedTuple, Self

from django.utils.translation import gettext, ngettext, override

from taskqueue.monitoring.durations import short_duration

LONGEST_MINUTES = 120


class Sentence(NamedTuple):
    """A text with gaps such as `{subject}`, and the values for them."""

    text: str
    values: Mapping[str, str]
    # Gaps that are filled with a span such as `15 minutes`, in seconds.
    times: Mapping[str, int] = {}
    # Gaps that are filled with a duration such as `3.2 h`, in seconds.
    ages: Mapping[str, float] = {}

    @property
    def english(self) -> str:
        """The sentence in English."""
        with override("en"):
            return self.translated

    @property
    def translated(self) -> str:
        """The sentence in the reader's language."""
        times = {name: _time_words(seconds) for name, seconds in self.times.items()}
        ages = {name: short_duration(max(0.0, seconds)) for name, seconds in self.ages.items()}
        text = gettext(self.text) if self.text else ""
        return text.format(**self.values, **times, **ages).strip()

    @property
    def words(self) -> dict[str, Any]:
        """The sentence as JSON, from which `of` restores it."""
        return {
            "text": self.text,
            "values": dict(self.values),
            "times": dict(self.times),
            "ages": dict(self.ages),
        }

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Self | None:
        """Return the sentence that was stored; None if there is none."""
        if not words.get("text"):
            return None
        gaps = (words.get(name, {}) for name in ("values", "times", "ages"))
        return cls(words["text"], *gaps)


def remedy_of(words: Mapping[str, Any]) -> Sentence:
    """Return the remedy stored with a sentence; its subject is quoted for a shell."""
    values = words.get("values", {})
    quoted = {"subject": quote(values.get("subject", ""))}
    return Sentence(words["remedy"], values | quoted, words.get("times", {}), words.get("ages", {}))


def _time_words(seconds: int) -> str:
    if seconds % 3600 == 0 and seconds > LONGEST_MINUTES * 60:
        count = seconds // 3600
        return ngettext("%(count)s hour", "%(count)s hours", count) % {"count": count}
    if seconds % 60 == 0:
        count = seconds // 60
        return ngettext("%(count)s minute", "%(count)s minutes", count) % {"count": count}
    return ngettext("%(count)s second", "%(count)s seconds", seconds) % {"count": seconds}
