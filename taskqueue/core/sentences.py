"""Sentences about conditions, in English and for readers of other languages.

Whoever judges marks the text with `gettext_noop`, and fills its gaps with values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

LONGEST_MINUTES = 120


class Sentence(NamedTuple):
    """A text with gaps such as `{subject}`, and what fills them."""

    text: str
    values: Mapping[str, str]
    # Gaps that are filled with a time, in seconds.
    times: Mapping[str, int] = {}

    @property
    def english(self) -> str:
        """The sentence in English."""
        times = {name: within(seconds) for name, seconds in self.times.items()}
        return self.text.format(**self.values, **times).strip()

    @property
    def words(self) -> dict[str, Any]:
        """The sentence as JSON, from which `of` makes it again."""
        return {"text": self.text, "values": dict(self.values), "times": dict(self.times)}

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Self | None:
        """Return the sentence that was stored; None where there is none."""
        if not words.get("text"):
            return None
        return cls(words["text"], words.get("values", {}), words.get("times", {}))

    def translated(self, translate: Callable[[str], str], time_words: Callable[[int], str]) -> str:
        """Return the sentence in the language of these functions."""
        times = {name: time_words(seconds) for name, seconds in self.times.items()}
        return translate(self.text).format(**self.values, **times).strip()


def within(seconds: int) -> str:
    """Return a time such as `15 minutes`, in English."""
    if seconds % 3600 == 0 and seconds > LONGEST_MINUTES * 60:
        return f"{seconds // 3600} hours"
    return f"{seconds // 60} minutes" if seconds % 60 == 0 else f"{seconds} s"
