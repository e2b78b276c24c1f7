"""Poolers: how this process and the workers reach the server."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.session_proof import has_own_session
from taskqueue.monitoring.doctor.finding import INFO, OK, Finding
from taskqueue.monitoring.read_models.worker import living, read_workers

CHECK = "pooling"
SILENCE = 5.0
MOST, NAMED = 1000, 5
DIRECTLY = (
    "Let workers connect to the server directly: they need few connections, and listen in place of "
    "polling. Or leave it, and choose --poll-interval."
)


def look_at_pooling(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """How this process reaches the server; workers may have other settings."""
    own = open_worker_connection(silence=SILENCE)
    try:
        is_own = has_own_session(own, silence=SILENCE)
    finally:
        own.close()
    if is_own:
        seen = "From here, a session belongs to one connection: a worker would listen."
        yield Finding(check=CHECK, severity=OK, seen=seen)
    else:
        yield Finding(
            check=CHECK,
            severity=INFO,
            seen="From here, a connection goes through a pooler. A worker would poll, and set "
            "nothing that outlives a transaction.",
            remedy=f"Web processes may stay as they are. {DIRECTLY}",
        )


def look_at_listening(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """How the workers that live reach the server, by what they found out themselves."""
    workers = living(read_workers(limit=MOST))
    polling = [worker.name for worker in workers if worker.listens is False]
    if polling:
        names = ", ".join(polling[:NAMED])
        more = f" and {len(polling) - NAMED} more" if len(polling) > NAMED else ""
        yield Finding(
            check=CHECK,
            severity=INFO,
            subject=polling[0] if len(polling) == 1 else "",
            seen=f"Workers that poll, since they connect through a pooler: {names}{more}.",
            remedy=DIRECTLY,
        )
    elif listening := sum(worker.listens is True for worker in workers):
        yield Finding(check=CHECK, severity=OK, seen=f"Workers that listen: {listening}.")
