"""Options for repeated calls: unique keys, and limits on which calls become tasks."""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from taskqueue.declarations.admission import Capacity, Debounce, Throttle
from taskqueue.declarations.arguments import UniqueKey, check_scope
from taskqueue.declarations.limit_kinds import AdmissionKind
from taskqueue.declarations.option import NOT_SCHEDULED, Use, option
from taskqueue.declarations.option import gettext_noop as _
from taskqueue.declarations.option_kinds import Checked, Choice, UniqueKeyKind
from taskqueue.declarations.per import Per
from taskqueue.declarations.run_options import YEAR
from taskqueue.declarations.time_kinds import HoldTime


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class KeyOptions:
    """Debounce, throttle and capacity: which calls become tasks while others exist."""

    unique_key: UniqueKey | None = option(
        UniqueKeyKind(), label=_("Unique key"),
        help=_("No second task is enqueued while a task holds this key."),
    )  # fmt: skip
    unique_scope: str | None = option(
        Checked(check_scope), Use.TASK | Use.USING | Use.SCHEDULE,
        label=_("Scope of the unique key"),
        help=_("Within which the key is unique; by default, the definition."),
    )  # fmt: skip
    unique_for: str | timedelta = option(
        HoldTime(), default="finished", rest_highest=YEAR,
        label=_("Unique key is held"),
        help=_('How long the key is held. A request may say "kept" only where the definition '
        "declares it, because such tasks are not pruned."),
    )  # fmt: skip
    unique_per: str | timedelta | None = option(
        Per(), rest_highest=YEAR,
        label=_("Unique key for each"),
        help=_("Hold the key until the end of the period in which the task is due: a minute, hour, "
        "day or week by the clock of TIME_ZONE, or a duration, counted from 1970."),
    )  # fmt: skip
    on_duplicate: str = option(
        Choice(("return", "raise", "replace")), NOT_SCHEDULED, "return",
        label=_("If another task holds the key"),
        help=_("What to do if another task holds the key."),
    )  # fmt: skip
    restart: str | None = option(
        Choice((None, "failed", "all")), NOT_SCHEDULED, carried="column",
        label=_("Finished holders to run again"),
        help=_('Which finished holders of the key run again; only with unique_for "kept".'),
    )  # fmt: skip
    debounce: Debounce | None = option(
        AdmissionKind(Debounce, 'Debounce(5, key="doc_id", max_wait=60)'), Use.TASK | Use.USING,
        label=_("Debounce"),
        help=_("Run the last call of a burst, once no call has come for a time."),
    )  # fmt: skip
    throttle: Throttle | None = option(
        AdmissionKind(Throttle, 'Throttle("1/h", key="user_id")'), Use.TASK | Use.USING,
        label=_("Throttle"),
        help=_("Enqueue at most this many tasks in each window, and drop further calls."),
    )  # fmt: skip
    capacity: Capacity | None = option(
        AdmissionKind(Capacity, 'Capacity(10, key="account_id")'), Use.TASK | Use.USING,
        label=_("Capacity"), help=_("Allow at most this many unfinished tasks."),
    )  # fmt: skip
