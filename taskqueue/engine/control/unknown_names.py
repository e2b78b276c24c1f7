"""Warn about unknown names: they may be paused, but are probably mistyped."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop as _

from taskqueue.core.log_text import one_line
from taskqueue.core.refusals import refusal
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.definition import registry
from taskqueue.engine.totals import REST
from taskqueue.models import Arrival, Total, Worker
from taskqueue.models.rollup import NAME, QUEUE
from taskqueue.models.worker import WorkerStatus

logger = logging.getLogger("taskqueue.engine")
DEFINITION = _("No definition here is named {name!r}, and no task of that name was enqueued.{hint}")
LANE = _(
    "No definition or worker here names the queue {name!r}, and no task was enqueued there.{hint}"
)


def warn_of_unknown(message: str, name: str, hint: str) -> None:
    """Log that something was done to a name that nobody knows, as that of a record with a `hint`.

    The command line prints the hint itself.
    """
    logger.warning(message, one_line(name), hint, extra={"hint": hint})


def unknown_definitions(connection: BaseDatabaseWrapper, names: Iterable[str]) -> dict[str, str]:
    """Return a warning for each name that no definition has and that appears in no totals.

    It suggests the closest known name.
    """
    declared = {each.name for each in registry.all()}
    if not (strange := [name for name in names if name not in declared]):
        return {}
    counted = _counted(connection, NAME)
    arrived = Arrival.objects.using(connection.alias).filter(name__in=strange)
    known = declared | counted | set(arrived.values_list("name", flat=True))
    return _hints(DEFINITION, strange, known)


def unknown_queue(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return a warning for a queue name; empty if a definition, worker or task has used it."""
    declared = {each.options.queue_name for each in registry.all()}
    if name in declared:
        return ""
    alias = connection.alias
    living = Worker.objects.using(alias).exclude(
        status__in=[WorkerStatus.STOPPED, WorkerStatus.LOST]
    )
    served = {queue for queues in living.values_list("queues", flat=True) for queue in queues}
    arrived = Arrival.objects.using(alias).filter(queue_name=name)
    known = declared | served | _counted(connection, QUEUE)
    # Rows of queues do not count, because pausing a misspelled name creates one.
    known |= set(arrived.values_list("queue_name", flat=True)[:1])
    return _hints(LANE, [name], known).get(name, "")


def _counted(connection: BaseDatabaseWrapper, kind: str) -> set[str]:
    rows = Total.objects.using(connection.alias).filter(kind=kind)
    return set(rows.values_list("label", flat=True))


def _hints(sentence: str, names: Iterable[str], known: set[str]) -> dict[str, str]:
    # Beyond this number of names, totals no longer keep them apart.
    if REST in known:
        return {}
    return {
        name: refusal(sentence, name=name, hint=did_you_mean(name, sorted(known)))
        for name in names
        if name not in known
    }
