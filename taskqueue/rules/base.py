"""The base class of the rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, ClassVar

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import values, wording
from taskqueue.rules.values import Part

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RESOLUTION = timedelta(microseconds=1)
# A rule that does not fire within this time never fires. The calendar's longest gap is 40 years,
# between two 29 Februaries on the same day of the week.
LONG_ENOUGH = timedelta(days=100 * 366)


@dataclass(frozen=True, init=False, repr=False)
class Rule(ABC):
    """An immutable value: a pure function from a moment to the next nominal time.

    Two rules of the same kind with the same values are equal and have the same hash. The
    constructor accepts wrong values; `check()` and all other methods raise for them.
    """

    kind: ClassVar[str]
    # Whether `after` is called with the end of the last run instead of the last nominal time.
    waits_for_end: ClassVar[bool] = False
    # The required and the optional values in JSON.
    required: ClassVar[Mapping[str, Part]]
    optional: ClassVar[Mapping[str, Part]] = values.LIMITS

    start: datetime | None
    end: datetime | None
    refusal: str

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.parts())
        return f"{type(self).__name__}({parts})"

    @classmethod
    def parts(cls) -> dict[str, Part]:
        """Return the values of this kind of rule by name."""
        return {**cls.required, **cls.optional}

    @abstractmethod
    def _times(self, after: datetime) -> Iterator[datetime]:
        """Yield the nominal times strictly after `after`, which is in UTC, ignoring `end`."""

    @abstractmethod
    def _description(self) -> str:
        """Return the rule in words, without `start` and `end`."""

    def check(self) -> None:
        """Raise InvalidSchedule if a value is wrong, or if the rule never fires at all."""
        self._require_sense()
        anchor = self.start or min(EPOCH, self.end or EPOCH)
        if self.after(anchor - min(LONG_ENOUGH, anchor - FIRST)) is None:
            limits = wording.limits(self.start, self.end)
            raise InvalidSchedule(
                _("{rule!r} never fires: no time of it lies {limits}.", rule=self, limits=limits)
                if limits
                else _("{rule!r} never fires: no time ever fits it.", rule=self)
            )

    def after(self, moment: datetime) -> datetime | None:
        """Return the first nominal time strictly after `moment`, in UTC; None when there is none.

        Raises InvalidSchedule for a rule with wrong values, ValueError for a naive `moment`.
        """
        return next(self.between(moment, LAST), None)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Iterate over the nominal times in (after, until], in UTC, strictly increasing.

        Raises InvalidSchedule for a rule with wrong values, ValueError for a naive limit.
        """
        self._require_sense()
        after, until = _in_utc(after), _in_utc(until)
        if self.end is not None:
            until = min(until, self.end)
        times = self._times(self._not_before_start(after))
        return takewhile(lambda moment: moment <= until, times)

    @property
    def is_fine(self) -> bool:
        """Whether two of its times may be less than a second apart."""
        return False

    @property
    def text(self) -> str:
        """Return the rule in words. Raises InvalidSchedule for a rule with wrong values."""
        self._require_sense()
        limits = wording.limits(self.start, self.end)
        return f"{self._description()}, {limits}" if limits else self._description()

    def as_json(self) -> dict[str, Any]:
        """Return the rule as plain JSON values, which `from_json` converts back.

        Datetimes are ISO 8601 in UTC, durations are seconds. Raises InvalidSchedule for a rule with
        wrong values.
        """
        self._require_sense()
        parts = self.parts().items()
        return {"kind": self.kind} | {n: part.to_json(getattr(self, n)) for n, part in parts}

    def _not_before_start(self, after: datetime) -> datetime:
        """Return the moment to search from, so that no time is found before `start`."""
        if self.start is None or self.start == FIRST:
            return after
        return max(after, self.start - RESOLUTION)

    def _require_sense(self) -> None:
        if self.refusal:
            raise InvalidSchedule(self.refusal)

    def _settle(self, given: Mapping[str, Any], **more: Any) -> None:
        """Keep the given values in canonical form; wrong ones as they are, with the refusal.

        `more` holds values that are only read.
        """
        kept: dict[str, Any] = {"start": None, "end": None, "refusal": "", **given}
        try:
            kept |= self._canonical(**given, **more)
            if kept["start"] and kept["end"] and kept["start"] > kept["end"]:
                raise InvalidSchedule(_(
                    "{owner}: start ({start}) is later than end ({end}). Put start first.",
                    owner=type(self).__name__, start=kept["start"].isoformat(),
                    end=kept["end"].isoformat(),
                ))  # fmt: skip
        except InvalidSchedule as error:
            kept["refusal"] = why(error)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _canonical(self, **given: Any) -> dict[str, Any]:
        """Return the values in canonical form. Raises InvalidSchedule for those that are wrong."""
        owner, parts = type(self).__name__, self.parts().items()
        return {name: part.canonical(owner, name, given[name]) for name, part in parts}


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ValueError(_("The moment must be an aware datetime, not {moment!r}.", moment=moment))
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST if moment.year == 1 else LAST
