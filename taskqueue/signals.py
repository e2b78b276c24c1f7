"""Signals, sent by the process that enqueues, or by the child process that runs the body.

Signals of tasks are sent with the definition as `sender` and a `task_result`. docs/logging.md says
which signals are not sent.
"""

from django.dispatch import Signal

#: With `task_result`, in the process that enqueues, once the task is written; the transaction
#: around it may still roll back. Also if another task was updated because it holds the unique key:
#: see `task_result.created`. Exceptions of receivers reach the caller.
task_enqueued = Signal(use_caching=True)

#: With the handle as `run`, in the process that enqueues, once the workflow is written; the
#: transaction around it may still roll back. The sender is the registered workflow, or the class
#: `taskqueue.workflows.Canvas`.
workflow_enqueued = Signal(use_caching=True)

#: With `task_result`, in the child process, before the body is called.
task_started = Signal(use_caching=True)

#: With `task_result`, `outcome` and `error`, in the child process, once the body has returned or
#: raised; `outcome.kind` is one of `taskqueue.core.outcomes.OutcomeKind`, `error` the exception or
#: None. The database does not have the outcome yet, except after an `atomic` body.
task_finished = Signal(use_caching=True)
