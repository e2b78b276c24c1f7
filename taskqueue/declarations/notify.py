"""`notify=` of a definition: who is notified when its tasks fail for good."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from taskqueue.core.alerts import KINDS, MOST_RECIPIENTS, AlertKind
from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.retries import seconds_of
from taskqueue.exceptions import Duration, InvalidTask

MOST_FAILURES = 10_000
SHORTEST_WINDOW, LONGEST_WINDOW = 60, 86_400
WINDOW = KINDS[AlertKind.FAILURE].window or 900


@dataclass(frozen=True, kw_only=True)
class Notify:
    """The recipients of alerts about failed tasks: `@task(notify=Notify(mail=[...]))`.

    With a `threshold` of 1, every failure is reported, in at most one message every five minutes;
    with a higher one, an alert is raised when that many tasks fail within `window` seconds.
    `endpoints` are ids of webhook endpoints. Raises `InvalidTask`.
    """

    mail: Iterable[str] = ()
    endpoints: Iterable[str] = ()
    threshold: int = 1
    window: Duration = WINDOW

    def __post_init__(self) -> None:
        object.__setattr__(self, "mail", addresses("Notify(mail=...)", self.mail))
        object.__setattr__(self, "endpoints", texts("Notify(endpoints=...)", self.endpoints))
        if not self.mail and not self.endpoints:
            raise InvalidTask(_(
                "notify must name somebody to tell, such as notify=['ops@example.org'] or "
                "Notify(endpoints=['3'])."
            ))  # fmt: skip
        is_whole = isinstance(self.threshold, int) and not isinstance(self.threshold, bool)
        if not is_whole or not 1 <= self.threshold <= MOST_FAILURES:
            raise InvalidTask(_(
                "Notify(threshold=...) must be a whole number from 1 to {most_failures:,}, not "
                "{threshold!r}.",
                most_failures=MOST_FAILURES, threshold=self.threshold,
            ))  # fmt: skip
        is_duration = isinstance(self.window, int | float | timedelta)
        seconds = seconds_of(self.window) if is_duration else -1.0
        if isinstance(self.window, bool) or not SHORTEST_WINDOW <= seconds <= LONGEST_WINDOW:
            raise InvalidTask(_(
                "Notify(window=...) must be {shortest_window} to {longest_window:,} seconds, not "
                "{window}.",
                shortest_window=SHORTEST_WINDOW, longest_window=LONGEST_WINDOW,
                window=shown(self.window),
            ))  # fmt: skip

    @property
    def window_seconds(self) -> int:
        """The window in seconds."""
        return round(seconds_of(self.window))


def check_notify(name: str, value: object) -> Notify:
    """Return the value of the option. Raises `InvalidTask`."""
    return value if isinstance(value, Notify) else Notify(mail=addresses(name, value))


def addresses(name: str, value: object) -> tuple[str, ...]:
    """Return addresses of mail. Raises `InvalidTask`."""
    found = texts(name, value)
    if len(found) > MOST_RECIPIENTS:
        raise InvalidTask(_(
            "{name} may have at most {most_recipients} addresses.",
            name=name, most_recipients=MOST_RECIPIENTS,
        ))  # fmt: skip
    for address in found:
        try:
            validate_email(address)
        except ValidationError:
            raise InvalidTask(_(
                "{name} must be addresses such as ops@example.org, not {address!r}.",
                name=name, address=address,
            )) from None  # fmt: skip
    return found


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return texts, without repetitions. Raises `InvalidTask`."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise InvalidTask(_(
            "{name} must be a list of texts, not {value!r}.", name=name, value=value
        ))  # fmt: skip
    found = list(given)
    if not all(isinstance(each, str) and each for each in found):
        raise InvalidTask(_(
            "{name} must be a list of texts, not {value!r}.", name=name, value=value
        ))  # fmt: skip
    return tuple(dict.fromkeys(found))
