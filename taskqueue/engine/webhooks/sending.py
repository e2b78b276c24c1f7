"""Specs of the tasks that send webhooks, for a parent that runs no task code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.own_tasks import DELIVER, TELL
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.payloads import Payload


def enqueue_deliveries(
    connection: BaseDatabaseWrapper, deliveries: Sequence[tuple[int, UUID]]
) -> list[UUID]:
    """Enqueue a task for each endpoint and delivery, in the caller's transaction.

    Return their ids.
    """
    calls = [{"endpoint": endpoint, "delivery": str(delivery)} for endpoint, delivery in deliveries]
    return _enqueue(connection, DELIVERING, calls)


def enqueue_telling(connection: BaseDatabaseWrapper, endpoint: int) -> None:
    """Enqueue the task that tells an endpoint's owner that it is disabled."""
    _enqueue(connection, TELLING, [{"endpoint": endpoint}])


def _enqueue(
    connection: BaseDatabaseWrapper,
    definition: BaseDefinition[Any, Any],
    calls: Sequence[dict[str, Any]],
) -> list[UUID]:
    if not calls:
        return []
    spec = replace(spec_of(definition), queue_name=get_settings().INTERNAL_QUEUE)
    payloads = []
    for task_id, call in zip(uuid7_hexes(len(calls)), calls, strict=True):
        kwargs = json.dumps(call)
        payloads.append(Payload(task_id, "[]", kwargs, None, spec.place("[]", kwargs)))
    dialect_for(connection).insert_many(connection, spec, payloads)
    wake(connection, ANYWHERE)
    return [UUID(payload.id) for payload in payloads]


def _declared(body: Any, options: dict[str, Any]) -> BaseDefinition[Any, Any]:
    return BaseDefinition(body, Options(**check_options(options, declared=True)))


def _deliver(endpoint: int, delivery: str) -> None: ...


def _tell(endpoint: int) -> None: ...


# Not in the registry: the definitions that run are declared where workers' children import them.
DELIVERING, TELLING = _declared(_deliver, DELIVER), _declared(_tell, TELL)
