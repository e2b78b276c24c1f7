"""The tasks of alerts: messages, calls of a heartbeat, examinations; `alerts.tasks` has the bodies.

They go before all else on the internal queue: an alert about a backlog must not stand at its end.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.retries import Exponential
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.run_options import HIGHEST_PRIORITY
from taskqueue.engine.enqueue import enqueue
from taskqueue.engine.specs import Payload, spec_of

PREFIX = "taskqueue.alerts."
HOUR, DAY = 3600, 86_400
# What each is called, with its options; `alerts.tasks` declares them with the same ones.
MAIL: dict[str, Any] = {
    "name": f"{PREFIX}mail", "priority": HIGHEST_PRIORITY, "max_attempts": 8, "timeout": 60,
    "backoff": Exponential(base=10, cap=HOUR), "retention": 7 * DAY,
}  # fmt: skip
# The next one comes soon: an old one would tell the watcher nothing.
HEARTBEAT: dict[str, Any] = {
    "name": f"{PREFIX}heartbeat", "priority": HIGHEST_PRIORITY, "max_attempts": 1, "timeout": 30,
    "max_crashes": 1, "expires_after": 60, "retention": HOUR,
}  # fmt: skip
EXAMINATION: dict[str, Any] = {
    "name": f"{PREFIX}examine", "priority": HIGHEST_PRIORITY, "max_attempts": 1, "timeout": 300,
    "max_crashes": 1, "expires_after": HOUR, "retention": DAY,
}  # fmt: skip


def _body(**arguments: Any) -> None:
    """Stand for the body, which is in a room above."""


_DEFINITIONS = {
    str(options["name"]): BaseDefinition(_body, Options(**check_options(options, declared=True)))
    for options in (MAIL, HEARTBEAT, EXAMINATION)
}


def enqueue_message(options: dict[str, Any], **arguments: Any) -> str:
    """Enqueue one of them in the caller's transaction; return its id."""
    spec = spec_of(_DEFINITIONS[options["name"]])
    spec = replace(spec, queue_name=get_settings().INTERNAL_QUEUE)
    kwargs = json.dumps(arguments, separators=(",", ":"))
    return enqueue(spec, Payload(uuid7_hex(), "[]", kwargs, None), on_duplicate="raise").id
