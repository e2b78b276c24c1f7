"""Counting ended workflows and repaired steps, for good."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.totals import label_among
from taskqueue.models import Workflow, WorkflowCount
from taskqueue.models.workflow_count import Counted

# Rows that one transaction adds up.
BATCH = 10_000


def count_ended(connection: BaseDatabaseWrapper, workflows: Iterable[Workflow]) -> None:
    """Count workflows in the transaction that ends them."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for workflow in workflows:
        if workflow.finished_at is not None:
            took = (workflow.finished_at - workflow.created_at).total_seconds()
            seconds[workflow.name, workflow.status].append(took)
    WorkflowCount.objects.using(connection.alias).bulk_create(
        WorkflowCount(name=name, what=what, number=len(alike), seconds=sum(alike))
        for (name, what), alike in seconds.items()
    )


def count_repairs(connection: BaseDatabaseWrapper, names: Iterable[str]) -> None:
    """Count repaired steps by the names of their workflows, in the transaction that repairs."""
    WorkflowCount.objects.using(connection.alias).bulk_create(
        WorkflowCount(name=name, what=Counted.REPAIRED.value, number=number)
        for name, number in Counter(names).items()
    )


def merge_counts(connection: BaseDatabaseWrapper) -> bool:
    """Add rows to the sum of their name; whether there are more.

    Rows that another worker adds at this moment are left to it. Two that begin the same sum leave
    two rows of it, which are added up as all are.
    """
    with orm_transaction(connection):
        rows = WorkflowCount.objects.using(connection.alias)
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
            new = WorkflowCount(name=name, what=row.what, number=0, is_sum=True)
            total = sums.setdefault((name, row.what), new)
            total.number += row.number
            total.seconds += row.seconds
            changed.add((name, row.what))
        totals = [sums[key] for key in sorted(changed)]
        rows.bulk_update([row for row in totals if row.pk], ["number", "seconds"])
        rows.bulk_create(row for row in totals if not row.pk)
        rows.filter(id__in=[row.id for row in added]).delete()
    return len(added) == BATCH
