"""Signals. Receivers run in the process that enqueues, or in the child that runs the body.

Each is sent with the definition as `sender` and a `task_result`.
"""

from __future__ import annotations

from django.dispatch import Signal

task_enqueued = Signal(use_caching=True)
"""A task was written or updated; the transaction around it may still roll back."""

task_started = Signal(use_caching=True)
"""A body is about to be called."""

task_finished = Signal(use_caching=True)
"""A body has returned or raised; the outcome is on its way to the database."""
