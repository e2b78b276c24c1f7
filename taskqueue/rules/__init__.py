"""Rules that decide when a schedule is due: immutable values, independent of any database.

A rule is a pure function from a moment to its next nominal time. Constructors accept
anything; `check()` raises for wrong values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import VERY_NEAR, did_you_mean
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.base import Rule
from taskqueue.rules.kinds import AfterEnd, Cron, DailyWindow, Every, Once
from taskqueue.rules.values import shown, suggestion

__all__ = ["KINDS", "AfterEnd", "Cron", "DailyWindow", "Every", "Once", "Rule", "from_json"]

KINDS: Mapping[str, type[Rule]] = {
    rule.kind: rule for rule in (Cron, Every, AfterEnd, DailyWindow, Once)
}
# Keywords that `Every` and `AfterEnd` accept in Python instead of an interval.
UNITS = ("weeks", "days", "hours", "minutes", "seconds")


def from_json(stored: Mapping[str, Any]) -> Rule:
    """Return the rule that `as_json` converted.

    Raises InvalidSchedule for a kind that is unknown, for keys that are unknown or missing, and for
    values of a wrong type; `check()` raises for other mistakes.
    """
    if not isinstance(stored, Mapping):
        raise InvalidSchedule(_(
            "A stored rule must be a JSON object, not {shown}.", shown=shown(stored)
        ))  # fmt: skip
    kind = stored.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = suggestion(kind, KINDS) or _(" The kinds are {names}.", names=", ".join(KINDS))
        raise InvalidSchedule(_(
            "There is no kind of rule {shown}.{hint}", shown=shown(kind), hint=hint
        ))  # fmt: skip
    rule = KINDS[kind]
    parts = rule.parts()
    values = {name: value for name, value in stored.items() if name != "kind"}
    for name in values:
        if name not in parts:
            raise InvalidSchedule(_(
                "A rule of the kind {kind!r} has no {shown}.{hint}",
                kind=kind, shown=shown(name), hint=_hint(name, parts),
            ))  # fmt: skip
    if missing := sorted(rule.required.keys() - values.keys()):
        raise InvalidSchedule(_(
            "A rule of the kind {kind!r} needs {names}.", kind=kind, names=", ".join(missing)
        ))  # fmt: skip
    return rule(**{name: parts[name].from_json(name, value) for name, value in values.items()})


def _hint(name: object, parts: Mapping[str, Any]) -> str:
    """Return a hint at the intended key: Python accepts `minutes=5`, stored rules an interval."""
    if name in UNITS and "interval" in parts:
        return _(" Give its interval in seconds.")
    return did_you_mean(
        name, parts, cutoff=VERY_NEAR, otherwise=_("It has {names}.", names=", ".join(parts))
    )
