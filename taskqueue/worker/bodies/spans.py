"""The span of an attempt: its attributes and its parent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from taskqueue import tracing
from taskqueue.declarations.handlers import declared
from taskqueue.declarations.own_tasks import DELIVER
from taskqueue.tracing.spans import MOST_LINKS
from taskqueue.worker.bodies.context import Context

if TYPE_CHECKING:
    from taskqueue.tracing.spans import AttemptSpan, Tracing
    from taskqueue.worker.bodies.execution import Attempt

logger = logging.getLogger("taskqueue.worker")


def begin_span(attempt: Attempt) -> None:
    """Read the attempt's place in its workflow, and start its span. Never raises.

    An attempt must not fail because it cannot be traced.
    """
    context = attempt.context
    try:
        if context._is_step:
            # Imported here, because few projects need it.
            from taskqueue.worker.bodies.step_facts import step_facts

            context._step = step_facts(context.task_id)
        if tracing.active is not None:
            context._span = span = _started(tracing.active, attempt)
            span.enter()
            _tell_followers(context, span)
    except Exception:
        fields = attempt.order.name, attempt.order.task_id
        logger.warning("Span not started task=%s id=%s", *fields, exc_info=True)


def _started(tracer: Tracing, attempt: Attempt) -> AttemptSpan:
    order, context = attempt.order, attempt.context
    step = context._step
    upstream: list[str] = []
    if step is not None:
        from taskqueue.worker.bodies.step_facts import upstream_spans

        upstream = upstream_spans(step.step_id, most=MOST_LINKS)
    elif order.name in declared() or order.name == DELIVER["name"]:
        # Imported here, because few projects need it.
        from taskqueue.worker.bodies.event_spans import spans_of_event

        upstream = spans_of_event(order.name, order.args, order.kwargs)
    waited = None if order.ready_at is None else max(0.0, attempt.started_at - order.ready_at)
    attributes: dict[str, Any] = {
        "messaging.destination.name": order.queue_name,
        "messaging.message.id": order.task_id,
        "taskqueue.attempt": order.attempt,
        "taskqueue.worker": context.worker_name,
        "taskqueue.wait_seconds": waited,
        "taskqueue.schedule": context.schedule or None,
        "taskqueue.workflow.id": None if step is None else str(step.workflow_id),
        "taskqueue.step": None if step is None else step.step,
    }
    span = tracer.attempt(order.name, context.metadata, attributes, upstream=upstream)
    if order.crashes:
        tracer.note_lost(span, order.crashes)
    return span


def _tell_followers(context: Context, span: AttemptSpan) -> None:
    """Write the span's identity into a log line of the attempt, for steps that may link to it."""
    if context._step is not None and context._step.is_awaited and span.identity:
        from taskqueue.worker.bodies.step_facts import SPAN_LOGGER

        line = context._lease_id, logging.DEBUG, SPAN_LOGGER, span.identity
        context._report_line(*line)


def note_raised(attempt: Attempt, error: BaseException) -> None:
    """Record the exception of a body in the span. Never raises."""
    definition, span = attempt.definition, attempt.context._span
    is_open = definition is not None and not definition.options.sensitive
    try:
        if span is not None:
            span.failed(error, shows_message=is_open)
    except Exception:  # Even converting an exception to text may fail.
        logger.warning("Error not noted id=%s", attempt.order.task_id, exc_info=True)
