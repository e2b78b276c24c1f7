"""Judging rules about workflows: those that failed, and those that run for too long."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.core.alerts import Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.alerts import figures
from taskqueue.monitoring.alerts import sentences as texts
from taskqueue.monitoring.alerts.rules import threshold_of, window_of
from taskqueue.monitoring.alerts.sentences import said
from taskqueue.monitoring.alerts.situation import AlertSituation


def failed(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield the names of failed workflows."""
    window = window_of(rule)
    found: dict[str, list[figures.FailedWorkflow]] = {}
    for workflow in situation.failed_workflows:
        if workflow.seconds <= window:
            found.setdefault(workflow.name, []).append(workflow)
    for name, rows in sorted(found.items()):
        if len(rows) >= threshold_of(rule):
            latest = max(rows, key=lambda row: row.finished_at)
            yield Judged(
                subject=name,
                **said(
                    texts.WORKFLOWS_FAILED,
                    subject=name,
                    count=f"{len(rows):,}",
                    example=latest.id,
                    times={"within": window},
                ),
                value=float(len(rows)),
                count=len(rows),
                latest_at=latest.finished_at,
                example=latest.id,
            )


def slow(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield the names of workflows that run for far longer than most successful ones."""
    slowest: dict[str, figures.SlowWorkflow] = {}
    for workflow in situation.slow_workflows:
        known = slowest.get(workflow.name)
        if known is None or workflow.seconds > known.seconds:
            slowest[workflow.name] = workflow
    for name, workflow in sorted(slowest.items()):
        times = workflow.seconds / max(workflow.usual, 0.001)
        if times > threshold_of(rule):
            yield Judged(
                subject=name,
                **said(
                    texts.WORKFLOW_SLOW,
                    subject=name,
                    example=workflow.id,
                    ages={"age": workflow.seconds, "usual": workflow.usual},
                ),
                value=times,
                example=workflow.id,
            )
