"""Log an attempt that failed in a child, with a traceback that leaves out the worker's frames."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from taskqueue.core.outcomes import Outcome, is_final
from taskqueue.engine.failures import extra
from taskqueue.engine.failures import logger as failures_logger
from taskqueue.exceptions import Directive
from taskqueue.worker.bodies.order import Order

# The modules through which a body is called.
RUNNERS = (
    "taskqueue.worker.bodies.execution",
    "taskqueue.worker.bodies.loops",
    "taskqueue.worker.bodies.slots",
    "taskqueue.testing.attempts",
)


def log_raised(order: Order, outcome: Outcome, error: BaseException) -> None:
    """Log the exception of a body in the child: an error if the task fails, otherwise a warning.

    Never raises, whatever the project's handlers do. An exception that the body has logged itself
    is left out.
    """
    if isinstance(error, Directive) and error._is_logged:
        return
    fields = order.name, order.task_id, order.attempt, order.queue_name
    named = extra(
        task_id=order.task_id,
        name=order.name,
        attempt=order.attempt,
        queue_name=order.queue_name,
    )
    try:
        if is_final(outcome, failures=order.failures, max_attempts=order.max_attempts):
            message = "Task failed task=%s id=%s attempt=%s queue=%s"
            failures_logger.error(message, *fields, exc_info=error, extra=named)
        else:
            message = "Attempt failed, the task is retried task=%s id=%s attempt=%s queue=%s"
            failures_logger.warning(message, *fields, exc_info=error, extra=named)
    except Exception:
        traceback.print_exc(file=sys.stderr)


def trim_traceback(error: BaseException) -> None:
    """Remove the worker's frames from the tracebacks of an error and of its causes.

    They say nothing about the error, and their variables hold the arguments, which error reporting
    would send along. If no body was called, or it had returned, no frame of taskqueue is left.
    """
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = _from_body_on(link.__traceback__)
            chain += (link.__cause__, link.__context__)


def _from_body_on(whole: TracebackType | None) -> TracebackType | None:
    """Remove the frames of taskqueue from the start of a traceback."""
    head = frame = whole
    while frame is not None:
        if _module_of(frame) in RUNNERS:
            head = frame.tb_next
        frame = frame.tb_next
    while head is not None and _module_of(head).partition(".")[0] == "taskqueue":
        head = head.tb_next
    return head


def _module_of(frame: TracebackType) -> str:
    return str(frame.tb_frame.f_globals.get("__name__"))
