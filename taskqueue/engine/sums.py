"""Sum up counts of which each process writes its own row, so that none waits for another."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.statement import Fact
from taskqueue.engine.totals import label_among
from taskqueue.models import CallCount, WorkflowCount

# The most rows that one transaction adds up.
BATCH = 10_000
HAS_COUNTS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_workflowcount WHERE NOT is_sum)
    OR EXISTS (SELECT 1 FROM taskqueue_callcount WHERE NOT is_sum)
""")


def merge_counts(connection: BaseDatabaseWrapper) -> bool:
    """Add rows of counts to the sum of their name. Return whether there are more.

    Rows that another worker is adding are left to it. Two workers that begin the same sum leave two
    rows of it, which are later added up like all others.
    """
    have_more = [_merge(connection, model) for model in (WorkflowCount, CallCount)]
    return any(have_more)


def _merge(connection: BaseDatabaseWrapper, model: type[WorkflowCount | CallCount]) -> bool:
    columns = [name for name in ("number", "seconds") if hasattr(model, name)]
    with orm_transaction(connection):
        rows: QuerySet[Any] = model._default_manager.using(connection.alias)
        unmerged = rows.filter(is_sum=False).order_by("id")
        added = list(unmerged.select_for_update(skip_locked=True)[:BATCH])
        if not added:
            return False
        sums = {
            (row.name, row.what): row
            for row in rows.filter(is_sum=True).order_by("id").select_for_update()
        }
        names = {name for name, _ in sums}
        changed = set()
        for row in sorted(added, key=lambda row: row.name):
            name = label_among(row.name, names)
            names.add(name)
            new = model(name=name, what=row.what, number=0, is_sum=True)
            total = sums.setdefault((name, row.what), new)
            for column in columns:
                setattr(total, column, getattr(total, column) + getattr(row, column))
            changed.add((name, row.what))
        totals = [sums[key] for key in sorted(changed)]
        rows.bulk_update([row for row in totals if row.pk], columns)
        rows.bulk_create(row for row in totals if not row.pk)
        rows.filter(id__in=[row.pk for row in added]).delete()
    return len(added) == BATCH
