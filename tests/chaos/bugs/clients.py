"""Bodies of small runs that do what people and duties do, so that bugs there are covered too."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from taskqueue import task
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Step, Workflow
from taskqueue.results.workflows import get_workflow
from tests.sample.worker_tasks import append

LONG_AGO = timedelta(minutes=5)


@task
def retry_often(journal: str, seconds: float) -> int:
    """Retries whatever workflow has a step that failed, until all have succeeded; how often."""
    append(journal, "start")
    retries = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and Workflow.objects.exclude(status="succeeded").exists():
        failing = Workflow.objects.exclude(failed_step="").values_list("id", flat=True)
        for id in failing.order_by("?")[:1]:
            with suppress(TransitionRefused):
                get_workflow(id).retry()
                retries += 1
        time.sleep(0.01)
    return retries


@task
def cancel(journal: str, workflow_id: str) -> None:
    """Cancels a workflow."""
    append(journal, "start")
    get_workflow(workflow_id).cancel("enough")


@task
def recount_often(journal: str, seconds: float) -> int:
    """Recounts all workflows, as if they had stood still for minutes; how often."""
    append(journal, "start")
    turns = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = timezone.now()
        open_ones = Workflow.objects.exclude(status__in=FINAL_WORKFLOWS)
        if Workflow.objects.exists() and not open_ones.exists():
            break
        open_ones.update(recount_at=now, moved_at=now - LONG_AGO)
        Step.objects.filter(status="running").update(counted_at=now - LONG_AGO)
        reconcile(connection)  # type: ignore[arg-type]
        turns += 1
        time.sleep(0.005)
    return turns
