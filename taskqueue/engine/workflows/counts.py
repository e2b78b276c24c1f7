"""Count ended workflows and repaired steps since the beginning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import Workflow, WorkflowCount
from taskqueue.models.workflow_count import Counted


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
