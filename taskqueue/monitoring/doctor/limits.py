"""Check for limits that keep tasks from ever running: halted sequences, forgotten limits."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.definition import registry
from taskqueue.declarations.placement import declared_limits
from taskqueue.models.limit import Per
from taskqueue.monitoring.doctor.finding import INFO, LIMITS, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.work import finding_of
from taskqueue.monitoring.notices import Situation
from taskqueue.monitoring.notices.sequences import halted_sequences
from taskqueue.monitoring.read_models.limit import read_limits

MOST = 1_000


def look_at_limits(
    connection: BaseDatabaseWrapper, situation: Situation | None = None
) -> Iterator[Finding]:
    """Yield tasks that limits may keep waiting forever."""
    seen = Situation() if situation is None else situation
    findings = [*map(finding_of, halted_sequences(seen)), *_forgotten()]
    yield from findings or [LIMITS.ok(_("No limit keeps tasks from running for good."))]


def _forgotten() -> Iterator[Finding]:
    """Yield limits with waiting tasks that no definition here declares."""
    try:
        definitions = registry.all()
    except Exception:  # The system checks report that they cannot be imported.
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
                seen=_(
                    "No definition here declares the limit {name}, and {count} tasks "
                    "wait for it. Its last numbers still hold."
                ).format(name=limit.name, count=limit.waiting_count),
                remedy=_(
                    "Nothing, if .using() gives it. Otherwise it ends with its tasks; manage.py "
                    "taskqueue limits set {name} changes its numbers until then."
                ).format(name=limit.name),
            )
