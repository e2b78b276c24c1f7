"""The log of a worker: a record for each failed attempt, and where records go.

They go where LOGGING sends them, else to standard error.
"""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType
from typing import TextIO

from django.utils.log import AdminEmailHandler

from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind, is_final
from taskqueue.core.states import TaskStatus
from taskqueue.engine.failures import NOT_RETRIED, Failure, extra, log_failed, log_retried
from taskqueue.engine.failures import logger as failures_logger
from taskqueue.exceptions import Directive
from taskqueue.worker.jobs import Job, Order

DEFAULT_LEVEL = logging.INFO  # The level of `--verbosity 1`.
# The modules through which a body is called.
RUNNERS = ("taskqueue.worker.execution", "taskqueue.worker.slots", "taskqueue.testing.attempts")


def show_logs(level: int = DEFAULT_LEVEL) -> None:
    """Show the logs of taskqueue, and of failed tasks, from `level` on.

    A record goes to standard error unless the project's LOGGING sends it elsewhere. A level that
    LOGGING sets is kept.
    """
    own = logging.getLogger("taskqueue")
    if own.level == logging.NOTSET:
        own.setLevel(level)
    if not own.hasHandlers():
        own.addHandler(_Console())
    if not _is_shown(failures_logger, logging.ERROR):
        console = _Console()
        console.setLevel(logging.WARNING)
        failures_logger.addHandler(console)


class _Console(logging.StreamHandler[TextIO]):
    """Standard error, for those records that no other handler shows.

    The project's code may add a handler at any time: `logging.info` adds one to the root logger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if not _is_shown(logging.getLogger(record.name), record.levelno):
            super().emit(record)


def _is_shown(logger: logging.Logger, level: int) -> bool:
    """Whether a record of that logger and level reaches a handler of the project that shows it.

    Mail does not count. Django's default LOGGING has a handler that is silent unless DEBUG is on.
    """
    # Not the record itself: a filter that lets each pass once would then drop it.
    record = logger.makeRecord(logger.name, level, "", 0, "", (), None)
    ancestor: logging.Logger | None = logger
    while ancestor is not None:
        for handler in ancestor.handlers:
            is_other = not isinstance(handler, _Console | AdminEmailHandler)
            if is_other and handler.level <= level and handler.filter(record):
                return True
        ancestor = ancestor.parent if ancestor.propagate else None
    return False


def log_raised(order: Order, outcome: Outcome, error: BaseException) -> None:
    """Log what a body raised, in the child: an error if the task fails, else a warning.

    Never raises, whatever the project's handlers do. Leaves out what the body has logged itself.
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


def note_logged(job: Job, outcome: Outcome) -> None:
    """Remember, in the parent, how the child has logged a failure that it reports."""
    if outcome.kind == OutcomeKind.FAILED:
        has_ended = is_final(outcome, failures=job.failures, max_attempts=job.max_attempts)
        job.logged_as = TaskStatus.FAILED if has_ended else TaskStatus.RETRYING


def log_unlogged(job: Job, outcome: Outcome, status: str | None) -> None:
    """Log a failure that no child has logged, or that the database judged more severely."""
    if not EFFECTS[outcome.kind].limited_by:
        return
    if status == TaskStatus.FAILED and job.logged_as != TaskStatus.FAILED:
        log = log_failed
    elif status not in NOT_RETRIED and not job.logged_as and outcome.kind != OutcomeKind.PARKED:
        log = log_retried
    else:
        return
    attempt = job.task_id, job.name, job.order[3], job.queue_name
    log(Failure(*attempt, outcome.error_class, outcome.error_message))


def trim_traceback(error: BaseException) -> None:
    """Cut the worker's frames from the tracebacks of an error and of its causes.

    They say nothing about the error, and their variables hold the arguments, which error reporting
    would send along. Where no body was called, or it had returned, no frame of taskqueue is left.
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
    """Cut the frames of taskqueue from the head of a traceback."""
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
