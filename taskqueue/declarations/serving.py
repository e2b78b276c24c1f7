"""Parse a worker's flags: queues with weights and slots, and slots of definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.names import DEFINITION_NAME, QUEUE_NAME
from taskqueue.exceptions import InvalidTask

HIGHEST_WEIGHT, MOST_SLOTS, MOST_CONCURRENCY = 1_000_000, 10_000, 1_000
# A worker's row and its requests hold them.
MOST_NAMES, LONGEST_TEXT = 1_000, 20_000


@dataclass(frozen=True)
class QueueChoice:
    """The queues that a worker serves, and how; no weights: all queues, alike."""

    weights: dict[str, int] = field(default_factory=dict)
    # The most slots of the worker that a queue may have.
    slots: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text that `parse_queues` reads."""
        return ",".join(
            f"{name}={weight}" + (f"@{self.slots[name]}" if name in self.slots else "")
            for name, weight in self.weights.items()
        )


def parse_queues(text: str, *, source: str = "--queues") -> QueueChoice:
    """Parse `critical=6,mail=3@2,low`: each queue with its weight and its slots, in order.

    An empty text stands for all queues. Raises `InvalidTask`.
    """
    weights: dict[str, int] = {}
    slots: dict[str, int] = {}
    for part in _parts(text, source):
        head, at, most = part.partition("@")
        name, equals, weight = head.partition("=")
        if not QUEUE_NAME.fullmatch(name):
            raise InvalidTask(_("{name!r} is not the name of a queue.", name=name))
        if name in weights:
            raise InvalidTask(_(
                "The queue {name!r} is listed twice in {source}.", name=name, source=source
            ))  # fmt: skip
        weights[name] = (
            _number(weight, HIGHEST_WEIGHT, _("The weight of {name!r}", name=name))
            if equals and weight
            else 1
        )
        if at:
            slots[name] = _number(
                most, MOST_SLOTS, _("The slots of {name!r}, behind @,", name=name)
            )
    if text and not weights:
        raise InvalidTask(_(
            "{source} {text!r} names no queue; omit it to serve all.", source=source, text=text
        ))  # fmt: skip
    return QueueChoice(weights, slots)


def parse_definition_slots(text: str, *, source: str = "--definition-slots") -> dict[str, int]:
    """Read `shop.tasks.export=1,shop.tasks.resize=4`. An empty text limits nothing.

    Raises `InvalidTask`.
    """
    slots: dict[str, int] = {}
    for part in _parts(text, source):
        name, _equals, most = part.partition("=")
        if not DEFINITION_NAME.fullmatch(name):
            raise InvalidTask(_("{name!r} is not the name of a definition.", name=name))
        if name in slots:
            raise InvalidTask(_(
                "The definition {name!r} is listed twice in {source}.", name=name, source=source
            ))  # fmt: skip
        slots[name] = _number(
            most, MOST_SLOTS, _("The slots of {name!r}, behind =,", name=name), least=0
        )
    if text and not slots:
        raise InvalidTask(_(
            "{source} {text!r} names no definition; omit it to limit none.",
            source=source, text=text,
        ))  # fmt: skip
    return slots


def definition_slots_text(slots: Mapping[str, int]) -> str:
    """Return the text that `parse_definition_slots` reads."""
    return ",".join(f"{name}={most}" for name, most in slots.items())


def check_concurrency(number: object) -> int:
    """Return a number of slots that a running worker can be given. Raises `InvalidTask`."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidTask(_("concurrency must be a whole number, not {number!r}.", number=number))
    if not 1 <= number <= MOST_CONCURRENCY:
        raise InvalidTask(_(
            "concurrency must be from 1 to {most_concurrency}, not {number}.",
            most_concurrency=MOST_CONCURRENCY, number=number,
        ))  # fmt: skip
    return number


def _parts(text: object, source: str) -> list[str]:
    if not isinstance(text, str):
        raise InvalidTask(_(
            "{source} must be a text such as those of runworker, not {text!r}.",
            source=source, text=text,
        ))  # fmt: skip
    if len(text) > LONGEST_TEXT:
        raise InvalidTask(_(
            "{source} may have {longest_text} characters, not {count}.",
            source=source, longest_text=LONGEST_TEXT, count=len(text),
        ))  # fmt: skip
    parts = [part for part in (part.strip() for part in text.split(",")) if part]
    if len(parts) > MOST_NAMES:
        raise InvalidTask(_(
            "{source} lists {count} names; {most_names} are the most.",
            source=source, count=len(parts), most_names=MOST_NAMES,
        ))  # fmt: skip
    return parts


def _number(text: str, most: int, what: str, *, least: int = 1) -> int:
    if text.isdecimal() and len(text) <= 7 and least <= int(text) <= most:
        return int(text)
    raise InvalidTask(_(
        "{what} must be a whole number from {least} to {most}, not {text!r}.",
        what=what, least=least, most=most, text=text,
    ))  # fmt: skip
