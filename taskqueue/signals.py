"""Signals, sent by the process that enqueues, or by the child process that runs the body.

Each is sent with the definition as `sender` and a `task_result`. docs/logging.md tells what is not
sent.
"""

from django.dispatch import Signal

#: A task was written or updated; the transaction around it may still roll back.
task_enqueued = Signal(use_caching=True)

#: A body is about to be called, in the child process.
task_started = Signal(use_caching=True)

#: A body has returned or raised, in the child process; also with its `outcome` and its `error`. The
#: outcome is on its way to the database.
task_finished = Signal(use_caching=True)
