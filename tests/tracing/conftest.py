"""A provider for the spans of this process, and workers that write theirs to files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.conftest import Drain
from tests.tracing.spans import Seen, read

Own = Callable[[], list[Seen]]
Elsewhere = Callable[..., list[Seen]]


@cache
def _exporter() -> InMemorySpanExporter:
    """A process sets its provider once, and for good."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def own(settings: Any) -> Own:
    """Trace enqueues; the spans of this process."""
    exporter = _exporter()
    exporter.clear()
    settings.TASKQUEUE = {**settings.TASKQUEUE, "TRACING": True}
    return lambda: [Seen.of(span.to_json(indent=None)) for span in exporter.get_finished_spans()]


@pytest.fixture
def elsewhere(drain: Drain, tmp_path: Path) -> Elsewhere:
    """Have workers run all there is; the spans of their processes."""
    folder = tmp_path / "spans"
    folder.mkdir()

    def run(*arguments: str) -> list[Seen]:
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.traced",
            "TASKQUEUE_TEST_SPANS": str(folder),
        }
        drain(*arguments, env=environment, settings={"TRACING": True, "CRASH_DELAY": 0})
        return read(folder)

    return run
