"""Options that limit how many tasks run at once or start within a period, and where."""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

from dataclasses import dataclass

from taskqueue.declarations.limit_kinds import CostKind, InstanceKind, LimitsKind, TagsKind
from taskqueue.declarations.limits import Concurrency, Cost, Fair, Rate, Sequence
from taskqueue.declarations.option import Use, option
from taskqueue.declarations.option import gettext_noop as _


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LimitOptions:
    """How many tasks run at once, or start in a time, and on which workers."""

    concurrency: tuple[Concurrency, ...] = option(
        LimitsKind(Concurrency, 'Concurrency(2, key="account_id")'), Use.TASK | Use.USING, (),
        label=_("Concurrency"),
        help=_("How many of its tasks run at once, of each key, host or worker."),
    )  # fmt: skip
    rate: tuple[Rate, ...] = option(
        LimitsKind(Rate, 'Rate("100/m", key="account_id")'), Use.TASK | Use.USING, (),
        label=_("Rate"), help=_("How many of its tasks start in every window of a time."),
    )  # fmt: skip
    cost: Cost = option(
        CostKind(), Use.TASK | Use.USING, 1,
        label=_("Cost"),
        help=_("How many tokens of a rate, or how much of a fair share, a task takes."),
    )  # fmt: skip
    fair: Fair | None = option(
        InstanceKind(Fair, 'Fair("tenant_id")'), Use.TASK | Use.USING,
        label=_("Fair shares"), help=_("Share the queue fairly between the values of a key."),
    )  # fmt: skip
    sequence: Sequence | None = option(
        InstanceKind(Sequence, 'Sequence("order_id")'), Use.TASK | Use.USING,
        label=_("Sequence"), help=_("Run the tasks of a key one after another."),
    )  # fmt: skip
    requires: tuple[str, ...] = option(
        TagsKind(), Use.TASK | Use.USING, (),
        label=_("Required tags"), help=_("The tags that a worker must have, by runworker --tags."),
    )  # fmt: skip
