"""The rows that an advance locks."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.transaction import atomic

from taskqueue.engine.workflows.locking import lock_workflows
from taskqueue.models import Workflow
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


def test_locked_workflows_leave_what_no_advance_reads_to_whoever_reads_it() -> None:
    run = add.s(1, 2).enqueue()

    with atomic():
        locked = lock_workflows(connection, [run.id])

    assert locked is not None
    (row,) = locked.workflows
    assert {"args", "kwargs", "moved_at"} <= row.get_deferred_fields()
    assert row.moved_at == Workflow.objects.get().moved_at
