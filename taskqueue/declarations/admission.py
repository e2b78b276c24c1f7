"""Debounce, throttle and capacity: which calls become tasks while others exist.

Each gives the tasks that it admits a unique key, or one of several unique keys: its places.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal

from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.limit_keys import LimitKey, check_limit_key
from taskqueue.declarations.rates import rate_of
from taskqueue.exceptions import Duration, InvalidTask

DAY = 86_400
SHORTEST, LONGEST_WAIT, LONGEST_WINDOW = 0.001, 30 * DAY, 366 * DAY
MOST_PLACES = 1000


@dataclass(frozen=True)
class Debounce:
    """Run only the last call of a burst, once no call has come for `wait` seconds.

    `@task(debounce=Debounce(5, key="doc_id", max_wait=60))`: it runs at the latest `max_wait`
    seconds after the first call. Raises `InvalidTask`.
    """

    option: ClassVar[str] = "debounce"

    wait: Duration
    _: KW_ONLY
    key: LimitKey = None
    max_wait: Duration | None = None

    def __post_init__(self) -> None:
        _check_key(self, self.key)
        wait, most = self.wait_seconds, self.most_seconds
        if most is not None and most < wait:
            raise InvalidTask(_(
                "Debounce(max_wait={max_wait}) must not be shorter than wait={wait}.",
                max_wait=shown(self.max_wait), wait=shown(self.wait),
            ))  # fmt: skip

    @property
    def wait_seconds(self) -> float:
        """How long no call must have come."""
        return _seconds("Debounce(wait=...)", self.wait)

    @property
    def most_seconds(self) -> float | None:
        """How long the first call waits at most; None: as long as others come."""
        return None if self.max_wait is None else _seconds("Debounce(max_wait=...)", self.max_wait)


@dataclass(frozen=True)
class Throttle:
    """Admit at most this many tasks in every window of time; further calls are dropped.

    `@task(throttle=Throttle("1/h", key="user_id"))`: the first runs, then none for an hour. A
    window may begin at any moment. Raises `InvalidTask`.
    """

    option: ClassVar[str] = "throttle"

    rate: str
    _: KW_ONLY
    key: LimitKey = None

    def __post_init__(self) -> None:
        _check_key(self, self.key)
        self.number  # noqa: B018  (raises what is no rate)

    @property
    def number(self) -> int:
        """How many tasks a window has."""
        return rate_of("Throttle(rate)", self.rate, most=MOST_PLACES, longest=LONGEST_WINDOW).number

    @property
    def seconds(self) -> int:
        """How long a window is."""
        most = {"most": MOST_PLACES, "longest": LONGEST_WINDOW}
        return rate_of("Throttle(rate)", self.rate, **most).seconds


@dataclass(frozen=True)
class Capacity:
    """Allow at most this many unfinished tasks, waiting and running together.

    `@task(capacity=Capacity(10, key="account_id"))`. The next call raises `CapacityReached`
    (`when_full="refuse"`), is dropped (`"drop"`), or cancels the oldest task that waits and is
    enqueued in its place (`"replace"`). Raises `InvalidTask`.
    """

    option: ClassVar[str] = "capacity"

    number: int
    _: KW_ONLY
    key: LimitKey = None
    when_full: Literal["refuse", "drop", "replace"] = "refuse"

    def __post_init__(self) -> None:
        _check_key(self, self.key)
        number: Any = self.number
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not 1 <= number <= MOST_PLACES:
            raise InvalidTask(_(
                "Capacity(number) must be a whole number from 1 to {most:,}, not {number!r}.",
                most=MOST_PLACES, number=number,
            ))  # fmt: skip
        if self.when_full not in ("refuse", "drop", "replace"):
            raise InvalidTask(_(
                "Capacity(when_full=...) must be 'refuse', 'drop' or 'replace', not {when_full!r}.",
                when_full=self.when_full,
            ))  # fmt: skip


Admission = Debounce | Throttle | Capacity


def is_debounced(unique_key: str | None, unique_for: str) -> bool:
    """Return whether a task with this key waits for further calls."""
    beginning = (unique_key or "").partition(":")[0]
    return beginning == Debounce.option and unique_for == "started"


def _check_key(admission: Admission, key: object) -> None:
    """Give it the normal form of its key. Raises `InvalidTask`."""
    what = f"{type(admission).__name__}(key=...)"
    object.__setattr__(admission, "key", check_limit_key(what, key))


def _seconds(what: str, value: Any) -> float:
    is_duration = isinstance(value, int | float | timedelta) and not isinstance(value, bool)
    seconds = seconds_of(value) if is_duration else -1.0
    if not SHORTEST <= seconds <= LONGEST_WAIT:
        raise InvalidTask(_(
            "{what} must be {shortest} seconds to {days} days, in seconds or as a timedelta, not "
            "{value}.",
            what=what, shortest=SHORTEST, days=LONGEST_WAIT // DAY, value=shown(value),
        ))  # fmt: skip
    return float(seconds)
