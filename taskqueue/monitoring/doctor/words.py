"""The doctor's texts: in the current language, with `Sentence.words` for other languages.

An alert tells what the doctor found an hour ago to readers of several languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as translated

from taskqueue.monitoring import durations
from taskqueue.monitoring.sentences import Sentence


class Age(str):
    """A duration in words, with its seconds."""

    seconds: float


class Told(str):
    """A text in the language of now, with the sentence that makes it in another one."""

    sentence: Sentence

    def format(self, *args: object, **values: object) -> Told:
        """Fill the gaps, and keep what fills them."""
        ages = {name: it.seconds for name, it in values.items() if isinstance(it, Age)}
        others = {name: str(it) for name, it in values.items() if name not in ages}
        filled = super().format(*args, **values)
        return _told(filled, Sentence(self.sentence.text, others, {}, ages))


def gettext(text: str) -> Told:
    """Return the text in the language of now."""
    return _told(translated(text), Sentence(text, {}))


def short_duration(seconds: float | None) -> Age:
    """Write a duration, as `durations.short_duration` does."""
    age = Age(durations.short_duration(seconds))
    age.seconds = seconds or 0.0
    return age


def words_of(seen: str, remedy: str) -> dict[str, Any]:
    """Return what makes a sentence and its remedy in other languages; empty if that is not known.

    It is not where both have a gap of one name that is filled with different values.
    """
    if not isinstance(seen, Told):
        return {}
    own = remedy.sentence if isinstance(remedy, Told) else Sentence(_escaped(remedy), {})
    values = _merged(seen.sentence.values, own.values)
    ages = _merged(seen.sentence.ages, own.ages)
    if values is None or ages is None:
        return {}
    return Sentence(seen.sentence.text, values, {}, ages).words | {"remedy": own.text}


def _told(text: str, sentence: Sentence) -> Told:
    told = Told(text)
    told.sentence = sentence
    return told


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    return None if any(one.get(key, it) != it for key, it in other.items()) else {**one, **other}


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
