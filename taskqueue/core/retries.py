"""Backoff policies: the delay before a retry. Standard library only."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar

from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import Duration

# No policy waits longer than this many seconds.
LONGEST = 366 * 24 * 3600.0
# What policies take that is no duration.
NUMBERS = ("jitter", "factor")


def seconds_of(duration: object) -> float:
    """Return a duration in seconds. Raises TypeError for other types than numbers and timedelta."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(_(
            "A duration is a number of seconds or a timedelta, not {duration}.",
            duration=shown(duration),
        ))  # fmt: skip
    try:
        return float(duration)
    except OverflowError:  # an integer beyond every limit that a caller checks
        return math.inf if duration > 0 else -math.inf


@dataclass(frozen=True)
class Backoff:
    """Base class of the policies: the delay after the n-th failure.

    `jitter` is the share of the delay that is drawn at random: 1 is "full jitter" (uniform
    between 0 and the delay), 0 none. See Marc Brooker, "Exponential Backoff And Jitter", AWS
    Architecture Blog, 2015. Every value is kept in seconds, as a float.
    """

    policy: ClassVar[str] = ""
    _: KW_ONLY
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in NUMBERS and (
                isinstance(value, bool) or not isinstance(value, int | float)
            ):
                raise TypeError(_(
                    "{type}: {field} must be a number, not {value}.",
                    type=type(self).__name__, field=field.name, value=shown(value),
                ))  # fmt: skip
            seconds = seconds_of(value)
            if not 0 <= seconds <= LONGEST:
                raise ValueError(_(
                    "{type}: {field} must be between 0 and {longest:g}, not {value}.",
                    type=type(self).__name__, field=field.name, longest=LONGEST,
                    value=shown(value),
                ))  # fmt: skip
            object.__setattr__(self, field.name, seconds)
        if self.jitter > 1:
            raise ValueError(_("{type}: jitter must be between 0 and 1.", type=type(self).__name__))

    def base_delay(self, failures: int) -> float:
        """Return the delay in seconds after this many failures (from 1), before jitter."""
        raise NotImplementedError

    def delay(self, failures: int) -> float:
        """Return the delay in seconds after this many failures (from 1)."""
        longest = min(self.base_delay(max(1, failures)), LONGEST)
        # Jitter spreads load; nothing secret depends on it.
        return longest * (1 - self.jitter * random.random())  # noqa: S311

    def snapshot(self) -> dict[str, Any]:
        """Return the policy as JSON, to be stored with a task."""
        return {"policy": self.policy} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Fixed(Backoff):
    """Always wait for the same delay."""

    policy: ClassVar[str] = "fixed"
    seconds: Duration = 10.0

    def base_delay(self, failures: int) -> float:
        return seconds_of(self.seconds)


@dataclass(frozen=True)
class _Rising(Backoff):
    """A policy whose delays grow."""

    base: Duration = 10.0
    _: KW_ONLY
    cap: Duration = 3600.0


@dataclass(frozen=True)
class Linear(_Rising):
    """Wait `base` seconds more after each failure, at most `cap`."""

    policy: ClassVar[str] = "linear"

    def base_delay(self, failures: int) -> float:
        return min(seconds_of(self.cap), seconds_of(self.base) * failures)


@dataclass(frozen=True)
class Exponential(_Rising):
    """Wait `factor` times `base` to the power of the failures, in seconds, at most `cap`."""

    policy: ClassVar[str] = "exponential"
    base: Duration = 2.0
    _: KW_ONLY
    jitter: float = 1.0
    factor: float = 1.0

    def snapshot(self) -> dict[str, Any]:
        stored = super().snapshot()
        if self.factor == 1:  # Workers that run an older version know no factor.
            del stored["factor"]
        return stored

    def base_delay(self, failures: int) -> float:
        try:
            power = seconds_of(self.base) ** failures
            return float(min(seconds_of(self.cap), self.factor * power))
        except OverflowError:
            return seconds_of(self.cap)


@dataclass(frozen=True)
class Fibonacci(_Rising):
    """Wait `base` seconds times 1, 1, 2, 3, 5, 8 …, at most `cap`."""

    policy: ClassVar[str] = "fibonacci"
    base: Duration = 1.0

    def base_delay(self, failures: int) -> float:
        cap = seconds_of(self.cap)
        current = following = seconds_of(self.base)
        for _rest in range(failures - 1):
            if current >= cap or following == 0:
                break
            current, following = following, current + following
        return min(cap, current)


DEFAULT = Exponential()
POLICIES: dict[str, type[Backoff]] = {
    policy.policy: policy for policy in (Fixed, Linear, Exponential, Fibonacci)
}


def from_snapshot(snapshot: Mapping[str, Any] | None) -> Backoff:
    """Return the policy that was stored with a task, or the default.

    Raises KeyError or TypeError for a snapshot of a policy that this version does not know.
    """
    if not snapshot:
        return DEFAULT
    values = dict(snapshot)
    return POLICIES[values.pop("policy")](**values)


def class_path(exception_class: type[BaseException]) -> str:
    """Return the path of a class: `module.qualname`."""
    return f"{exception_class.__module__}.{exception_class.__qualname__}"
