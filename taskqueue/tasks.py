"""The tasks of taskqueue itself, found like those of every app."""

from taskqueue.webhooks import tasks as _webhooks  # noqa: F401
