"""Limits as the project declares them: concurrency, rates, fair shares, sequences, tags, costs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.limit_keys import LimitKey, check_limit_key
from taskqueue.declarations.names import DEFINITION_NAME
from taskqueue.declarations.rates import RateOf, rate_of
from taskqueue.exceptions import InvalidTask

MOST_AT_ONCE = 10_000
MOST_A_WINDOW = 1_000_000_000
MOST_LIMITERS = 4
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100.0
# A cost, or a callable that gets the arguments and returns one.
Cost = int | Callable[..., int]
Weight = float | Callable[..., float]


@dataclass(frozen=True)
class Concurrency:
    """Run at most this many tasks at once, in total or for each value of a key.

    `@task(concurrency=Concurrency(2, key="account_id"))`. Definitions that name the same limit
    share it. With `per="host"` or `"worker"`, the tasks of each host or worker count separately.
    The limit is exact: a place counts as long as its lease is running, and the place of a lost
    worker becomes free with its lease. Raises `InvalidTask`.
    """

    limit: int
    _: KW_ONLY
    key: LimitKey = None
    name: str | None = None
    per: Literal["host", "worker"] | None = None

    def __post_init__(self) -> None:
        check_whole("Concurrency(limit)", self.limit, most=MOST_AT_ONCE)
        _check_limit(self)
        if self.per not in (None, "host", "worker"):
            raise InvalidTask(_(
                "Concurrency(per=...) must be 'host' or 'worker', not {per!r}.", per=self.per
            ))  # fmt: skip
        if self.per is not None and self.key is not None:
            raise InvalidTask(_("Concurrency takes a key or per=, not both."))


@dataclass(frozen=True)
class Rate:
    """Start at most this many tasks in every window, in total or for each value of a key.

    `@task(rate=Rate("100/m", key="account_id"))`. Every window of that length has at most this
    many starts, wherever it begins; retries count as starts. `smooth=True` spaces starts evenly,
    without bursts. Raises `InvalidTask`.
    """

    rate: str
    _: KW_ONLY
    key: LimitKey = None
    name: str | None = None
    smooth: bool = False

    def __post_init__(self) -> None:
        _check_limit(self)
        if not isinstance(self.smooth, bool):
            raise InvalidTask(_(
                "Rate(smooth=...) must be True or False, not {smooth!r}.", smooth=self.smooth
            ))  # fmt: skip
        self.parsed  # noqa: B018  (raises what is no rate)

    @property
    def parsed(self) -> RateOf:
        """How many in how many seconds."""
        return rate_of("Rate(rate)", self.rate, most=MOST_A_WINDOW)


@dataclass(frozen=True)
class Fair:
    """Share a queue fairly between the values of a key, such as tenants.

    `@task(fair=Fair("tenant_id"))`: a tenant with 100,000 tasks delays those of another tenant by
    at most one round of all tenants that have work. A weight of 2 gives twice the share. Raises
    `InvalidTask`.
    """

    key: LimitKey
    _: KW_ONLY
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        _set_key(self)
        if self.key is None:
            raise InvalidTask(_("Fair(key) must name an argument, or be a callable."))
        if not callable(self.weight):
            check_weight(self.weight)


@dataclass(frozen=True)
class Sequence:
    """Run the tasks of a key one after another, in the order in which they were enqueued.

    `@task(sequence=Sequence("order_id"))`. The next task starts when the previous one has ended
    for good, including its retries. With `on_failure="halt"`, a failed task halts the sequence,
    until it is retried or the sequence is released by hand. Raises `InvalidTask`.
    """

    key: LimitKey
    _: KW_ONLY
    name: str | None = None
    on_failure: Literal["continue", "halt"] = "continue"

    def __post_init__(self) -> None:
        _check_limit(self)
        if self.on_failure not in ("continue", "halt"):
            raise InvalidTask(_(
                "Sequence(on_failure=...) must be 'continue' or 'halt', not {on_failure!r}.",
                on_failure=self.on_failure,
            ))  # fmt: skip


def check_whole(name: str, value: object, *, most: int) -> int:
    """Return a whole number from 1 on. Raises `InvalidTask`."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 1 <= value <= most:  # type: ignore[operator]
        raise InvalidTask(_(
            "{name} must be a whole number from 1 to {most:,}, not {value!r}.",
            name=name, most=most, value=value,
        ))  # fmt: skip
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_weight(value: object) -> float:
    """Return a weight. Raises `InvalidTask`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not LEAST_WEIGHT <= value <= MOST_WEIGHT:  # type: ignore[operator]
        raise InvalidTask(_(
            "A weight must be a number from {least_weight} to {most_weight:g}, not {value!r}.",
            least_weight=LEAST_WEIGHT, most_weight=MOST_WEIGHT, value=value,
        ))  # fmt: skip
    return float(value)  # type: ignore[arg-type]


def _check_limit(limit: Concurrency | Rate | Sequence) -> None:
    _set_key(limit)
    name: Any = limit.name
    if name is not None and not (isinstance(name, str) and DEFINITION_NAME.fullmatch(name)):
        raise InvalidTask(_(
            "{type}(name=...) must be 1 to 255 letters, digits and ._:<>-, not {name!r}.",
            type=type(limit).__name__, name=name,
        ))  # fmt: skip


def _set_key(limit: Concurrency | Rate | Fair | Sequence) -> None:
    """Give it the normal form of its key. Raises `InvalidTask`."""
    what = f"{type(limit).__name__}(key=...)"
    object.__setattr__(limit, "key", check_limit_key(what, limit.key))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """All that limits the calls of a definition."""

    concurrency: tuple[Concurrency, ...] = ()
    rate: tuple[Rate, ...] = ()
    cost: Cost = 1
    fair: Fair | None = None
    sequence: Sequence | None = None
    requires: tuple[str, ...] = ()
    # The arguments that nobody is to see.
    sensitive: Collection[str] = field(default=frozenset())

    @property
    def has_any(self) -> bool:
        """Return whether its tasks may belong to a partition."""
        return bool(self.concurrency or self.rate or self.fair or self.sequence or self.requires)

    @property
    def keys(self) -> list[tuple[str, LimitKey]]:
        """Return all keys, each with the name of its option, for messages."""
        limits: list[Concurrency | Rate | Fair | Sequence] = [*self.concurrency, *self.rate]
        limits += filter(None, (self.fair, self.sequence))
        return [(f"The key of {type(limit).__name__}", limit.key) for limit in limits]


def check_limits(name: str, limits: Limits, *, priority: int, is_apart: bool) -> None:
    """Raise `InvalidTask` if limits of a definition exclude each other or other options."""
    if not limits.has_any:
        if limits.cost != 1:
            raise InvalidTask(_("{name}: cost= needs a rate= or fair=.", name=name))
        return
    if is_apart:
        raise InvalidTask(_(
            "{name}: concurrency, rate, fair, sequence and requires exclude workers, worker_names "
            "and broadcast.",
            name=name,
        ))  # fmt: skip
    if len(limits.concurrency) + len(limits.rate) > MOST_LIMITERS:
        raise InvalidTask(_(
            "{name}: at most {most_limiters} limits of concurrency and rate.",
            name=name, most_limiters=MOST_LIMITERS,
        ))  # fmt: skip
    if limits.sequence is not None and priority:
        raise InvalidTask(_(
            "{name}: the tasks of a sequence run in the order of their enqueues; leave out "
            "priority.",
            name=name,
        ))  # fmt: skip
    if isinstance(limits.cost, int):
        for rate in limits.rate:
            if limits.cost > rate.parsed.number:
                raise InvalidTask(_(
                    "{name}: cost={cost} is more than Rate({rate!r}) ever has.",
                    name=name, cost=limits.cost, rate=rate.rate,
                ))  # fmt: skip
