"""The doctor's texts: in the current language, with `Sentence.words` for other languages.

An alert shows an hour-old finding of the doctor to readers of several languages.
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
    """A text in the current language, with the sentence from which it is made in another one."""

    sentence: Sentence

    def format(self, *args: object, **values: object) -> Told:
        """Fill the gaps, and keep the values."""
        ages = {name: it.seconds for name, it in values.items() if isinstance(it, Age)}
        others = {name: str(it) for name, it in values.items() if name not in ages}
        filled = super().format(*args, **values)
        return _told(filled, Sentence(self.sentence.text, others, {}, ages))


def gettext(text: str) -> Told:
    """Return the text in the current language."""
    return _told(translated(text), Sentence(text, {}))


def short_duration(seconds: float | None) -> Age:
    """Return a duration in words, as `durations.short_duration` does."""
    age = Age(durations.short_duration(seconds))
    age.seconds = seconds or 0.0
    return age


def words_of(seen: str, remedy: str) -> dict[str, Any]:
    """Return the data to translate a sentence and its remedy; empty if that is impossible.

    It is impossible if both have a gap of the same name with different values.
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
