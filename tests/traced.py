"""The settings of tests, in a project that exports its spans, and those of its statements.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_TEST_SPANS` | the folder in which each process writes its spans |
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db.backends.signals import connection_created
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from tests.settings import *  # noqa: F403

TRACER = trace.get_tracer("shop")


class ToFile:
    """The file of this process; it is made with its first span."""

    def write(self, text: str) -> None:
        folder = Path(os.environ["TASKQUEUE_TEST_SPANS"])
        with (folder / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(text)

    def flush(self) -> None:
        """Nothing is held back."""


def trace_statement(execute: Callable[..., Any], sql: str, *others: Any) -> Any:
    """Tell of a statement of a body, as instrumentation of a database does."""
    if not trace.get_current_span().get_span_context().is_valid:
        return execute(sql, *others)
    with TRACER.start_as_current_span(sql.split()[0], kind=trace.SpanKind.CLIENT) as span:
        span.set_attribute("db.query.text", sql)
        return execute(sql, *others)


def instrument(connection: Any, **kwargs: Any) -> None:
    connection.execute_wrappers.append(trace_statement)


provider = TracerProvider()
# By batches, as in production: what is left is sent at the end of a process.
exporter: Any = ConsoleSpanExporter(
    out=ToFile(),  # type: ignore[arg-type]
    formatter=lambda span: span.to_json(indent=None) + "\n",
)
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
trace.set_tracer_provider(provider)
connection_created.connect(instrument)
