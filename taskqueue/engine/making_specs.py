"""Making specs of enqueues from definitions, with the settings and the current span."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from taskqueue import tracing
from taskqueue.conf import Settings, get_settings
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option_kinds import LARGEST_METADATA
from taskqueue.declarations.options import COLUMNS as CARRIED_OPTIONS
from taskqueue.declarations.options import Options
from taskqueue.declarations.payload import encode
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.keys import held_as
from taskqueue.engine.specs import OPTION_COLUMNS, EnqueueSpec
from taskqueue.tracing.metadata import carrying

_SETTINGS = tuple((option.name, option.setting) for option in CARRIED_OPTIONS if option.setting)
_option_values = attrgetter(*OPTION_COLUMNS)


def spec_of(definition: BaseDefinition[Any, Any]) -> EnqueueSpec:
    """Return a definition's spec, which is made once for the definition and the settings."""
    settings = get_settings()
    known = definition.spec
    if known is None or known[0] is not settings:
        known = definition.spec = settings, make_spec(definition, settings)
    return known[1]


def traced(spec: EnqueueSpec) -> EnqueueSpec:
    """Return the spec with the current span, if enqueues are traced."""
    if tracing.active is None:
        return spec
    return _carrying(spec, tuple(tracing.active.carrier().items()))


@lru_cache(maxsize=64)
def _carrying(spec: EnqueueSpec, carrier: tuple[tuple[str, str], ...]) -> EnqueueSpec:
    """Return one spec for all tasks of an enqueue: tasks of one spec are written together."""
    return replace(spec, metadata=carrying(spec.metadata, dict(carrier)))


def make_spec(definition: BaseDefinition[Any, Any], settings: Settings) -> EnqueueSpec:
    """Return a spec with a definition's options, and the settings' defaults for missing ones."""
    options = definition.options
    run_at, run_in = _moment(options.run_after)
    deadline_at, deadline_in = _moment(options.deadline)
    return EnqueueSpec(
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
        limit_plan=definition.limit_plan,
        given=definition.given,
        **held_as(options),
        **_columns(options, settings),
    )


def _columns(options: Options, settings: Settings) -> dict[str, Any]:
    """Return the columns for options: their values, or the settings that they stand for."""
    columns = dict(zip(OPTION_COLUMNS, _option_values(options), strict=True))
    for name, setting in _SETTINGS:
        if columns[name] is None:
            columns[name] = getattr(settings, setting)
    return columns


def _moment(moment: Moment | None) -> tuple[datetime | None, float | None]:
    if moment is None or isinstance(moment, datetime):
        return moment, None
    return None, seconds_of(moment)
