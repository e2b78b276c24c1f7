"""Enqueueing the tasks of alerts: messages, calls of heartbeats."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.own_tasks import HEARTBEAT, MAIL
from taskqueue.engine.enqueue import enqueue
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.payloads import Payload


def _body(**arguments: Any) -> None:
    """Stand in for the body, which is in a layer above."""


_DEFINITIONS = {
    str(options["name"]): BaseDefinition(_body, Options(**check_options(options, declared=True)))
    for options in (MAIL, HEARTBEAT)
}


def enqueue_message(options: dict[str, Any], **arguments: Any) -> str:
    """Enqueue one of these tasks in the caller's transaction. Return its id."""
    spec = spec_of(_DEFINITIONS[options["name"]])
    spec = replace(spec, queue_name=get_settings().INTERNAL_QUEUE)
    kwargs = json.dumps(arguments, separators=(",", ":"))
    return enqueue(spec, Payload(uuid7_hex(), "[]", kwargs, None), on_duplicate="raise").id
