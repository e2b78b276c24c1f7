"""OpenTelemetry: a span for each enqueue and each attempt, in one trace.

Without the setting TRACING nothing here imports the package, and `active` is None. Spans contain
names and numbers, never arguments or results. The project decides about providers, sampling and
export.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from taskqueue.conf import parse
from taskqueue.tracing.metadata import ORIGIN, PARENT, STATE
from taskqueue.tracing.spans import Tracing

logger = logging.getLogger("taskqueue.worker")

# None while TRACING is off; each enqueue checks this.
active: Tracing | None = None


def refresh() -> None:
    """Trace from now on if the settings say so and the package is installed.

    A system check warns if TRACING is set without the package.
    """
    global active
    active = None
    # Read anew, because code that reads the settings too early must not keep them.
    if parse(getattr(django_settings, "TASKQUEUE", {}))[0].TRACING:
        try:
            active = Tracing()
        except ImportError:
            logger.warning("OpenTelemetry is not installed, nothing is traced")


def _settings_changed(*, setting: str, **kwargs: object) -> None:
    if setting == "TASKQUEUE":
        refresh()


setting_changed.connect(_settings_changed)


def relinked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a task that is made from another by hand.

    The new task belongs to the current trace, if there is one, and is linked to that of the other
    task.
    """
    own = dict(metadata)
    own.pop(STATE, None)
    if (parent := own.pop(PARENT, None)) is not None:
        own[ORIGIN] = parent
    return own if active is None else {**own, **active.carrier()}
