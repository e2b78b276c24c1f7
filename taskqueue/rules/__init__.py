"""When a schedule is due: rules in time, as immutable values that know nothing of any database.

A rule is a pure function from a moment to its next nominal time. Constructors take anything;
`check()` says what is wrong with it.
"""

from taskqueue.rules.base import Rule
from taskqueue.rules.cron import Cron
from taskqueue.rules.daily_window import DailyWindow
from taskqueue.rules.intervals import AfterEnd, Every
from taskqueue.rules.once import Once
from taskqueue.rules.stored import KINDS, from_json

__all__ = ["KINDS", "AfterEnd", "Cron", "DailyWindow", "Every", "Once", "Rule", "from_json"]
