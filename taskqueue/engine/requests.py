"""From a definition to what all its tasks share: its options in the words of the engine."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskqueue.conf import Settings, get_settings
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option_values import LARGEST_METADATA
from taskqueue.declarations.payload import encode
from taskqueue.engine.rows import Request

if TYPE_CHECKING:
    from taskqueue.declarations.option_values import Moment
    from taskqueue.declarations.options import Options


def request_of(definition: BaseDefinition[Any, Any]) -> Request:
    """What all tasks of one enqueue share; made once for a definition and its settings."""
    settings = get_settings()
    known = definition.request
    if known is None or known[0] is not settings:
        known = definition.request = settings, _request_of(definition, settings)
    return known[1]


def _request_of(definition: BaseDefinition[Any, Any], settings: Settings) -> Request:
    options = definition.options
    run_at, run_in = _moment(options.run_after)
    deadline_at, deadline_in = _moment(options.deadline)
    unique_for, unique_in = _unique_for(options)
    return Request(
        name=definition.name,
        queue_name=options.queue_name,
        priority=options.priority,
        run_at=run_at,
        run_in=run_in,
        options=definition.snapshot,
        metadata=encode(options.metadata, limit=LARGEST_METADATA, what="metadata")
        if options.metadata
        else "{}",
        max_attempts=options.max_attempts or settings.MAX_ATTEMPTS,
        max_crashes=options.max_crashes or settings.MAX_CRASHES,
        crash_delay=settings.CRASH_DELAY if options.crash_delay is None else options.crash_delay,
        deadline_at=deadline_at,
        deadline_in=deadline_in,
        expires_in=None if options.expires_after is None else seconds_of(options.expires_after),
        lease_duration=options.lease_duration,
        ping_interval=options.ping_interval,
        retention=options.retention,
        unique_scope=definition.unique_scope,
        unique_for=unique_for,
        unique_in=unique_in,
        workers=options.workers,
        worker_names=options.worker_names,
        broadcast=options.broadcast,
        restart=options.restart,
    )


def _moment(moment: Moment | None) -> tuple[datetime | None, float | None]:
    if moment is None or isinstance(moment, datetime):
        return moment, None
    return None, seconds_of(moment)


def _unique_for(options: Options) -> tuple[str, float | None]:
    if options.unique_key is None:
        return "", None
    if isinstance(options.unique_for, timedelta):
        return "duration", options.unique_for.total_seconds()
    return options.unique_for, None
