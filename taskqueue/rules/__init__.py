"""Rules that decide when a schedule is due: immutable values, independent of any database.

A rule is a pure function from a moment to its next nominal time. Constructors accept
anything; `check()` raises for wrong values.
"""

from taskqueue.rules.base import Rule
from taskqueue.rules.clock_rules import Cron, DailyWindow
from taskqueue.rules.intervals import AfterEnd, Every, Once
from taskqueue.rules.stored import KINDS, from_json

__all__ = ["KINDS", "AfterEnd", "Cron", "DailyWindow", "Every", "Once", "Rule", "from_json"]
