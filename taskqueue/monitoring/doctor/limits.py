"""Whether limits keep tasks from ever running: tags, halted sequences, forgotten limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.definition import registry
from taskqueue.declarations.placement import declared_limits
from taskqueue.engine.statement import Statement
from taskqueue.models import Partition
from taskqueue.models.limit import Per
from taskqueue.monitoring.doctor.finding import INFO, PROBLEM, WARNING, Check, Finding
from taskqueue.monitoring.read_models.limit import read_limits
from taskqueue.monitoring.read_models.worker import living, read_workers
from taskqueue.monitoring.reading import read

LIMITS = Check("limits")
MOST = 1_000
# The lanes of open partitions that need tags.
LANES = Statement.of("""
SELECT queue_name, lane, count(*)
FROM (
    SELECT queue_name, lane
    FROM taskqueue_partition
    WHERE state = 'open'
    ORDER BY queue_name, lane
    LIMIT 100000
) AS open_ones
WHERE lane <> ''
GROUP BY queue_name, lane
ORDER BY queue_name, lane
""")


def look_at_limits(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield what waits for good, as far as limits tell."""
    findings = [*_tags(), *_halted(connection), *_forgotten()]
    yield from findings or [LIMITS.ok("No limit keeps tasks from running for good.")]


def _tags() -> Iterator[Finding]:
    """Yield tags of waiting tasks that no running worker of their queue has."""
    workers = living(read_workers(limit=MOST))
    for queue_name, lane, _ in read(LANES):
        tags = set(json.loads(lane).get("tags", ()))
        serving = [worker for worker in workers if worker.serves(queue_name)]
        if tags and not any(tags <= set(worker.tags) for worker in serving):
            named = ",".join(sorted(tags))
            yield LIMITS.finding(
                PROBLEM if serving else WARNING,
                subject=queue_name,
                seen=f"Tasks of the queue {queue_name} require the tags {named}, which no running "
                "worker of the queue has.",
                remedy=f"manage.py runworker --queues {queue_name} --tags {named}",
            )


def _halted(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield that sequences are halted, with the task that failed in one of them."""
    halted: Any = Partition.objects.using(connection.alias).filter(state="halted")
    found = list(halted.order_by("id").values_list("holder", flat=True)[: MOST + 1])
    if found:
        number = f"{MOST:,}+" if len(found) > MOST else f"{len(found):,}"
        yield LIMITS.problem(
            subject=str(found[0]),
            seen=f"Halted sequences: {number}. In one of them the task {found[0]} failed, and "
            "all behind it wait.",
            remedy=f"manage.py taskqueue retry {found[0]}, or manage.py taskqueue release "
            f"{found[0]} to let the others go on without it.",
        )


def _forgotten() -> Iterator[Finding]:
    """Yield limits with waiting tasks that no definition here declares."""
    try:
        definitions = registry.all()
    except Exception:  # The system checks tell that they cannot be imported.
        return
    known = {
        limit["name"]
        for definition in definitions
        for limit in declared_limits(definition.limits, definition.name)
    }
    for limit in read_limits(limit=MOST):
        if limit.per != Per.QUEUE and limit.name not in known and limit.waiting:
            yield LIMITS.finding(
                INFO,
                subject=limit.name,
                seen=f"No definition here declares the limit {limit.name}, and "
                f"{limit.waiting_count} tasks wait for it. Its last numbers still hold.",
                remedy="Nothing, if .using() gives it. Otherwise it ends with its tasks; "
                f"manage.py taskqueue limits set {limit.name} changes its numbers until then.",
            )
