"""The tasks of taskqueue itself, found like those of every app."""

from taskqueue.alerts import tasks as _alerts  # noqa: F401
from taskqueue.conf import get_settings as _get_settings
from taskqueue.webhooks import tasks as _webhooks  # noqa: F401

if any(_get_settings().BUILTIN_TASKS.values()):
    from taskqueue.builtin import declare as _declare

    _declare()
