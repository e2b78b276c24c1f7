"""Collect events: each is written as a row, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.batch import BRACKETS
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.payload import check_text, encode
from taskqueue.engine.connections import project_connection
from taskqueue.engine.making_specs import spec_of
from taskqueue.exceptions import InvalidArguments, InvalidTask
from taskqueue.models import Collected
from taskqueue.models.parts import DatabaseClock

# The most rows of one statement.
ROWS = 500
LONGEST_GROUP = 200


def collect_many(
    definition: BaseDefinition[Any, Any], events: Iterable[Any], *, group: str = ""
) -> None:
    """Write events for the batches of a group, in the caller's transaction.

    Raises `InvalidTask` for a definition without `batch`, and `InvalidArguments` for an event or a
    group that cannot be stored; in both cases nothing is written.
    """
    batch = definition.options.batch
    if batch is None:
        raise InvalidTask(
            f"{definition.name} does not collect events: declare it with @task(batch=Batch(...))."
        )
    try:
        check_text(group, limit=LONGEST_GROUP, what="group")
    except (TypeError, ValueError) as error:
        raise InvalidArguments(str(error), path=("group",)) from None
    limit = batch.max_bytes - BRACKETS
    checks = get_settings().CHECK_ARGUMENTS
    (listed,), _ = definition.stored((list(events),), {}, checks=checks)
    # The events are the one argument of the body.
    is_secret = definition.signature.is_secret(0)
    texts = [
        encode(event, limit=limit, what="event", is_secret=lambda _place: is_secret)
        for event in listed
    ]
    spec = spec_of(definition).as_json()
    rows = [
        Collected(
            name=definition.name,
            group=group,
            event=text,
            size=len(text),
            collected_at=DatabaseClock(),
            max_size=batch.max_size,
            max_bytes=batch.max_bytes,
            grace=batch.seconds("grace"),
            max_delay=batch.seconds("max_delay"),
            spec=spec,
        )
        for text in texts
    ]
    connection = project_connection()
    Collected.objects.using(connection.alias).bulk_create(rows, batch_size=ROWS)
