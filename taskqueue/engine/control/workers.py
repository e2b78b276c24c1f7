"""Send requests to workers: quiet, resume, stop, kill. A worker reads them with its pings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import STOP, wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TransitionRefused, WorkerDoesNotExist
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerRequest, WorkerStatus

# A request is replaced only by a stronger one.
STRENGTH = ("", WorkerRequest.QUIET.value, WorkerRequest.STOP.value, WorkerRequest.KILL.value)
RESUME = "resume"
GONE = frozenset({WorkerStatus.STOPPED, WorkerStatus.LOST})


@dataclass(frozen=True, kw_only=True)
class WorkerFilter:
    """Workers that have not ended and match all conditions."""

    # An empty set is a choice too: no worker matches it.
    names: Collection[str] | None = None
    host: str = ""
    # Workers that serve this queue, by name or because they serve all queues.
    queue_name: str = ""
    # Says explicitly that all workers are meant.
    everyone: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise TypeError(_("names holds several names: [{names!r}].", names=self.names))
        if self.everyone == bool(self.names is not None or self.host or self.queue_name):
            raise ValueError(_(
                "Choose workers by names, host or queue_name, or say everyone=True."
            ))  # fmt: skip


def quiet_worker(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Ask a worker to claim no more tasks, finish running ones, and stay until it is resumed.

    Raises `WorkerDoesNotExist`.
    """
    request_workers(WorkerFilter(names=[name]), "quiet", by=by, reason=reason, seen=seen)


def resume_worker(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Let a quiet worker claim tasks again.

    Raises `WorkerDoesNotExist`, and `TransitionRefused` if it is not quiet or was asked to end.
    """
    if not resume_workers(WorkerFilter(names=[name]), by=by, reason=reason, seen=seen):
        rows = Worker.objects.using(project_connection().alias).filter(name=name)
        asked = rows.values_list("request", flat=True).first()
        if asked:
            raise TransitionRefused(_(
                "Worker {name!r} is to {asked} and cannot be resumed.", name=name, asked=asked
            ))  # fmt: skip
        raise TransitionRefused(_("Worker {name!r} is not quiet: nothing to resume.", name=name))


def stop_worker(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Ask a worker to end as at SIGTERM. Raises `WorkerDoesNotExist`."""
    request_workers(WorkerFilter(names=[name]), "stop", by=by, reason=reason, seen=seen)


def kill_worker(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Ask a worker to end at once and return running tasks. Raises `WorkerDoesNotExist`."""
    request_workers(WorkerFilter(names=[name]), "kill", by=by, reason=reason, seen=seen)


def request_workers(
    which: WorkerFilter,
    request: WorkerRequest | str,
    *,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> list[str]:
    """Send workers a request; return the names of those that now have it, or a stronger one.

    Return those that now have it or a stronger one. A weaker request never replaces a stronger one.
    If a named worker does not exist, this raises `WorkerDoesNotExist` and sends nothing. Raises
    ValueError for an unknown request.
    """
    try:
        request = WorkerRequest(request)
    except ValueError:
        known = ", ".join(repr(choice.value) for choice in WorkerRequest)
        raise ValueError(_(
            "A worker can be asked for {known}, not {request!r}.", known=known, request=request
        )) from None  # fmt: skip
    connection = project_connection()
    with atomic(using=connection.alias):
        chosen = chosen_workers(connection, which, seen)
        weaker = STRENGTH[: STRENGTH.index(request)]
        asked = [worker for worker in chosen if worker.request in weaker]
        _write(connection, asked, request.value, person(by, reason))
    return [worker.name for worker in chosen]


def resume_workers(
    which: WorkerFilter, *, by: object = "", reason: str = "", seen: Seen = None
) -> list[str]:
    """Let quiet workers claim again; return the names of those that were asked to be quiet.

    A worker that was asked to stop still stops. If a named worker does not exist, this raises
    `WorkerDoesNotExist` and resumes nobody.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        chosen = chosen_workers(connection, which, seen)
        quiet = [worker for worker in chosen if worker.request == WorkerRequest.QUIET]
        _write(connection, quiet, RESUME, person(by, reason))
    return [worker.name for worker in quiet]


def _write(
    connection: BaseDatabaseWrapper, workers: Sequence[Worker], verb: str, who: Person
) -> None:
    """Write or withdraw a request for locked workers, with audit entries, and wake the workers."""
    if not workers:
        return
    now = dialect_for(connection).now(connection)
    request, at, by, reason = (
        ("", None, "", "") if verb == RESUME else (verb, now, who.by, who.reason)
    )
    rows = Worker.objects.using(connection.alias)
    rows.filter(id__in=[worker.id for worker in workers]).update(
        request=request,
        requested_at=at,
        requested_by=by,
        request_reason=reason,
        request_seen_at=None,
    )
    acts = [Act(worker.name, worker.status, worker.request) for worker in workers]
    audit(connection, "worker", verb, acts, person=who)
    wake(connection, STOP)


def chosen_workers(
    connection: BaseDatabaseWrapper, which: WorkerFilter, seen: Seen
) -> list[Worker]:
    """Lock the matching workers, by name. Raises `WorkerDoesNotExist` and `ChangedMeanwhile`."""
    take_write_lock(connection)
    rows = Worker.objects.using(connection.alias).exclude(status__in=sorted(GONE))
    workers = rows.order_by("name").select_for_update()
    if which.names is not None:
        workers = workers.filter(name__in=[name for name in which.names if is_storable(name)])
    if which.host:
        workers = workers.filter(host=which.host) if is_storable(which.host) else workers.none()
    chosen = [
        worker
        for worker in workers
        if not which.queue_name or not worker.queues or which.queue_name in worker.queues
    ]
    missing = set(which.names or ()) - {worker.name for worker in chosen}
    if missing:
        raise WorkerDoesNotExist(_missing(connection, min(missing, key=str), which))
    for worker in chosen:
        require_seen(worker, seen, _("Worker {name!r}", name=worker.name))
    return chosen


def _missing(connection: BaseDatabaseWrapper, name: str, which: WorkerFilter) -> str:
    rows = Worker.objects.using(connection.alias)
    if which.host or which.queue_name:
        return _("No worker named {name!r} matches the given host and queue.", name=name)
    ended = rows.filter(name=name, status__in=sorted(GONE)).first() if is_storable(name) else None
    if ended is not None:
        return _(
            "Worker {name!r} is {status}: there is nobody to ask.", name=name, status=ended.status
        )
    living = rows.exclude(status__in=sorted(GONE)).values_list("name", flat=True)
    hint = did_you_mean(str(name), list(living))
    return _("No worker is named {name!r}.{hint}", name=name, hint=hint)
