"""Send the signals for an attempt that starts or ends, with its definition."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from taskqueue import signals
from taskqueue.core.outcomes import Outcome, OutcomeKind, is_final
from taskqueue.declarations.definition import BaseDefinition

if TYPE_CHECKING:
    from taskqueue.worker.bodies.execution import Attempt

logger = logging.getLogger("taskqueue.worker")


def announce_start(attempt: Attempt, definition: BaseDefinition[Any, Any]) -> None:
    """Announce that the body starts. Never raises."""
    if signals.task_started.receivers and signals.task_started.has_listeners(definition):
        _send(attempt, signals.task_started)
    definition.announce_start(attempt.context)


def announce_end(attempt: Attempt, outcome: Outcome, error: BaseException | None) -> None:
    """Announce how the attempt ended. Never raises."""
    definition, order = attempt.definition, attempt.order
    if signals.task_finished.receivers and signals.task_finished.has_listeners(definition):
        _send(attempt, signals.task_finished, outcome=outcome, error=error)
    if definition is not None:
        # The end as far as this process knows it.
        may_be_retried = (
            outcome.kind == OutcomeKind.FAILED
            and not attempt.context._is_stopped
            and not is_final(outcome, failures=order.failures, max_attempts=order.max_attempts)
        )
        definition.announce_end(attempt.context, outcome, may_be_retried=may_be_retried)


def _send(attempt: Attempt, signal: Any, **named: Any) -> None:
    """Send a signal; exceptions of receivers are logged, and change no outcome."""
    order = attempt.order
    try:
        result = attempt.context.task_result
    except Exception:
        logger.exception("Signal not sent task=%s id=%s", order.name, order.task_id)
        return
    for _, answer in signal.send_robust(attempt.definition, task_result=result, **named):
        if isinstance(answer, Exception):
            logger.error("Signal receiver failed", exc_info=answer)
