"""Find the workflow that contains a nested one: only that can be retried."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import OuterRef, Subquery

from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import as_uuid
from taskqueue.models import Step, Workflow


def outermost_workflows(ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """Return by id the outermost workflow around each of these; one query for each level."""
    alias = database_alias()
    found = {each: each for each in ids}
    inner = set(found)
    step = Step.objects.using(alias).filter(id=OuterRef("parent_step_id"))
    while inner:
        rows = Workflow.objects.using(alias).filter(id__in=inner, parent_step_id__isnull=False)
        around = rows.annotate(around=Subquery(step.values("workflow_id")))
        # SQLite returns the column of a subquery as it is stored.
        pairs = around.values_list("id", "around")
        parents = {inner_id: as_uuid(outer_id) for inner_id, outer_id in pairs if outer_id}
        found = {each: parents.get(last, last) for each, last in found.items()}
        inner = set(parents.values())
    return found
