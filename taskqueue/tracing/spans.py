"""The spans of enqueues and attempts, made by OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from traceback import format_exception, format_tb
from typing import TYPE_CHECKING, Any

from taskqueue.core import __version__
from taskqueue.core.retries import class_path
from taskqueue.tracing.metadata import LONGEST_STATE, ORIGIN, PARENT, STATE, context_in

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span

SYSTEM = "taskqueue"
LONGEST_MESSAGE, LONGEST_STACK = 1000, 16_000
MOST_LINKS = 100
FLUSH_MILLISECONDS = 2000


class AttemptSpan:
    """The span of one attempt, which is current while its body runs."""

    def __init__(self, tracing: Tracing, span: Span, context: Context) -> None:
        self._tracing = tracing
        self._span = span
        self._token: Any = None
        # If the body runs on an event loop of another thread, the span is made current there.
        self.context = context
        # The outcome of the attempt.
        self.outcome = ""

    @property
    def identity(self) -> str:
        """Return the text by which links name this span; empty if it is not sampled."""
        return _traceparent(self._span) if self._span.is_recording() else ""

    def enter(self) -> None:
        """Make it the current span of this thread."""
        self._token = self._tracing.contexts.attach(self.context)

    def leave(self) -> None:
        """Make the previous span current again."""
        if self._token is not None:
            self._tracing.contexts.detach(self._token)
            self._token = None

    def failed(self, error: BaseException, *, shows_message: bool) -> None:
        """Record a body's exception; without its message if arguments are sensitive."""
        self._tracing.note_error(self._span, error, shows_message=shows_message)

    def end(self) -> None:
        """End it, with the outcome."""
        self.leave()
        if self.outcome:
            self._span.set_attribute("taskqueue.outcome", self.outcome)
        self._span.end()


class Tracing:
    """The spans of taskqueue. Raises ImportError without OpenTelemetry's API."""

    def __init__(self) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.contexts = context
        self._api = trace
        self._propagator = TraceContextTextMapPropagator()
        # A proxy: the project may set its provider later.
        self._tracer = trace.get_tracer(SYSTEM, __version__)

    # In the process that enqueues

    @contextmanager
    def sending(self, queue_name: str, name: str, *, count: int | None = None) -> Iterator[Span]:
        """Open the span of an enqueue of one task, or of `count` tasks by one call."""
        attributes: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.destination.name": queue_name,
            "taskqueue.task.name": name,
        }
        if count is not None:
            attributes["messaging.batch.message_count"] = count
        with self._open(f"send {queue_name}", attributes) as span:
            yield span

    @contextmanager
    def sending_workflow(self, name: str, *, steps: int, tasks: int) -> Iterator[Span]:
        """Open the span of an enqueue of a workflow."""
        attributes: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.batch.message_count": tasks,
            "taskqueue.workflow.name": name,
            "taskqueue.workflow.steps": steps,
        }
        with self._open(f"send workflow {name}", attributes) as span:
            yield span

    @contextmanager
    def _open(self, name: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
        kind = self._api.SpanKind.PRODUCER
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False,
            set_status_on_exception=False,
        ) as span:  # fmt: skip
            try:
                yield span
            except BaseException as error:
                # Messages of enqueue errors may contain arguments, for example in unique keys.
                self.note_error(span, error, shows_message=False)
                raise

    def carrier(self) -> dict[str, str]:
        """Return the context of the current span for tasks; empty if there is none.

        Baggage is left out: it may be secret, and rows are kept.
        """
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        if len(carrier.get(STATE, "")) > LONGEST_STATE:
            del carrier[STATE]
        return carrier

    # In the process that runs a body

    def attempt(
        self,
        name: str,
        metadata: Mapping[str, Any],
        attributes: Mapping[str, Any],
        *,
        upstream: Iterable[str] = (),
    ) -> AttemptSpan:
        """Start the span of an attempt, as a child of the one that enqueued its task.

        `upstream` are the identities of spans that it follows; a task without a parent begins a
        trace.
        """
        empty = self.contexts.Context()
        parent = self._propagator.extract(context_in(metadata), context=empty)
        origin = metadata.get(ORIGIN)
        named = [*([origin] if isinstance(origin, str) else []), *upstream]
        span = self._tracer.start_span(
            f"process {name}",
            context=parent,
            kind=self._api.SpanKind.CONSUMER,
            attributes={
                "messaging.system": SYSTEM,
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "taskqueue.task.name": name,
                **{key: value for key, value in attributes.items() if value is not None},
            },
            links=list(self._links(named)),
        )
        return AttemptSpan(self, span, self._api.set_span_in_context(span, parent))

    def _links(self, identities: Iterable[str]) -> Iterator[Link]:
        for identity in list(dict.fromkeys(identities))[:MOST_LINKS]:
            found = self._propagator.extract({PARENT: identity}, context=self.contexts.Context())
            context = self._api.get_current_span(found).get_span_context()
            if context.is_valid:
                yield self._api.Link(context)

    def note_error(self, span: Span, error: BaseException, *, shows_message: bool) -> None:
        """Set the status of a span, and record the exception: its class and its frames.

        The message, which is also in the text of a traceback, is included only if it may be shown.
        """
        name = class_path(type(error))
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, name))
        event = {"exception.type": name}
        stack = "".join((*format_tb(error.__traceback__), name))
        if shows_message:
            try:
                event["exception.message"] = str(error)[:LONGEST_MESSAGE]
                stack = "".join(format_exception(error))
            except Exception as unprintable:  # From code of the project, as `__str__` is.
                event["exception.message"] = f"<the message raised {type(unprintable).__name__}>"
        event["exception.stacktrace"] = stack[-LONGEST_STACK:]
        span.add_event("exception", event)

    def note_lost(self, span: AttemptSpan, crashes: int) -> None:
        """Record that earlier attempts were lost: a process that is killed sends no span."""
        span._span.add_event("taskqueue.attempts.lost", {"taskqueue.crashes": crashes})

    def trace_id(self) -> str:
        """Return the id of the current trace, as 32 hexadecimal digits; empty if there is none."""
        context = self._api.get_current_span().get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else ""

    def flush(self) -> None:
        """Send the remaining spans before this process ends. Bounded in time."""
        flush = getattr(self._api.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(FLUSH_MILLISECONDS)


def _traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
