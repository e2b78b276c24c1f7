"""Why something was refused: in English, with the data that a face needs to translate it.

Exceptions, logs, REST and the command line show the English text. The admin translates it
(`taskqueue.display.refused`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Refusal(str):
    """A text in English that keeps its template and the values of its gaps."""

    __slots__ = ("template", "values")

    template: str
    values: dict[str, Any]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Leave the values out: other processes may not be able to load them."""
        return str, (str(self),)


def refusal(template: str, **values: Any) -> Refusal:
    """Return the text with its gaps filled. The template is marked for the translators."""
    told = Refusal(template.format(**values))
    told.template, told.values = template, values
    return told


def joined(parts: Iterable[str], separator: str = "\n") -> Refusal:
    """Return several texts as one."""
    values = {f"part{place}": part for place, part in enumerate(parts)}
    template = "{separator}".join(f"{{{name}}}" for name in values)
    return refusal(template, **values, separator=separator)


def why(error: BaseException) -> str:
    """Return the text of an error, with the data to translate it if that is known."""
    told = error.args[0] if error.args else ""
    return told if isinstance(told, Refusal) else str(error)
