"""`manage.py taskqueue_worker`: `runworker`, where another app has a command of that name."""

from taskqueue.management.commands.runworker import Command

__all__ = ["Command"]
