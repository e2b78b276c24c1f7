"""Check whether workers run the doctor, whose findings are notices and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.examinations import LATE
from taskqueue.models import Examination
from taskqueue.monitoring.doctor.finding import Check, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration
from taskqueue.monitoring.reading import now

EXAMINATIONS = Check("examinations")


def look_at_examinations(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield when a worker last ran the doctor."""
    row = Examination.objects.using(connection.alias).filter(examined_at__isnull=False).first()
    remedy = _("Start a worker, or read the workers' logs. A new worker waits a minute first.")
    if row is None or row.examined_at is None:
        yield EXAMINATIONS.info(
            seen=_("No worker has run the doctor yet: its findings are not among the notices."),
            remedy=remedy,
        )
        return
    seconds = (now() - row.examined_at).total_seconds()
    values = {"name": row.worker_name, "host": row.host, "age": short_duration(seconds)}
    if seconds > LATE:
        yield EXAMINATIONS.info(
            seen=_(
                "The last worker that ran the doctor was {name} on {host}, {age} ago: the notices "
                "of its findings may be outdated."
            ).format(**values),
            remedy=remedy,
        )
    else:
        yield EXAMINATIONS.ok(
            _("The worker {name} on {host} ran the doctor {age} ago.").format(**values)
        )
