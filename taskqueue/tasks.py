"""The tasks of taskqueue itself, found like those of every app."""

from taskqueue.alerts import tasks as _alerts  # noqa: F401
from taskqueue.builtin import declare as _declare
from taskqueue.webhooks import tasks as _webhooks  # noqa: F401

_declare()
