"""`manage.py taskqueue_worker`: `runworker`, for projects where another app has one."""

from taskqueue.management.commands.runworker import Command

__all__ = ["Command"]
