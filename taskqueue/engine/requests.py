"""What all tasks of an enqueue share, made from the definition and its options."""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from taskqueue.conf import Settings, get_settings
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option_kinds import LARGEST_METADATA, Moment
from taskqueue.declarations.options import COLUMNS, Options
from taskqueue.declarations.payload import encode
from taskqueue.engine.rows import Request


def request_of(definition: BaseDefinition[Any, Any]) -> Request:
    """Return what all tasks of an enqueue share; made once for a definition and its settings."""
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
        run_at=run_at,
        run_in=run_in,
        options=definition.snapshot,
        metadata=encode(options.metadata, limit=LARGEST_METADATA, what="metadata")
        if options.metadata
        else "{}",
        deadline_at=deadline_at,
        deadline_in=deadline_in,
        expires_in=None if options.expires_after is None else seconds_of(options.expires_after),
        unique_scope=definition.unique_scope,
        unique_for=unique_for,
        unique_in=unique_in,
        **_columns(options, settings),
    )


_COLUMNS = tuple(option.name for option in COLUMNS)
_SETTINGS = tuple((option.name, option.setting) for option in COLUMNS if option.setting)
_column_values = attrgetter(*_COLUMNS)


def _columns(options: Options, settings: Settings) -> dict[str, Any]:
    """Return the columns that hold an option as it is, or the setting that it stands for."""
    columns = dict(zip(_COLUMNS, _column_values(options), strict=True))
    for name, setting in _SETTINGS:
        if columns[name] is None:
            columns[name] = getattr(settings, setting)
    return columns


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
