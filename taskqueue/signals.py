"""Signals, sent by the process that enqueues, or by the child process that runs the body.

Those of tasks are sent with the definition as `sender` and a `task_result`. docs/logging.md tells
what is not sent.
"""

from django.dispatch import Signal

#: A task was written or updated; the transaction around it may still roll back.
task_enqueued = Signal(use_caching=True)

#: A workflow was written; sent with its handle as `run`, and the workflow as `sender`, or the class
#: `taskqueue.workflows.Canvas`. The transaction around it may still roll back.
workflow_enqueued = Signal(use_caching=True)

#: A body is about to be called, in the child process.
task_started = Signal(use_caching=True)

#: A body has returned or raised, in the child process; also with its `outcome` and its `error`. The
#: outcome is on its way to the database.
task_finished = Signal(use_caching=True)
