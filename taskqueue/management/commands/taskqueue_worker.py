"""`manage.py taskqueue_worker`: `runworker`, where another app has a command of that name."""

from __future__ import annotations

from taskqueue.management.commands.runworker import Command

__all__ = ["Command"]
