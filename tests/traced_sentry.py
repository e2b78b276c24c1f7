"""The settings of tests, in a project that sends errors and spans to Sentry.

Here Sentry makes its transactions of the spans of OpenTelemetry, as docs/tracing.md tells.
"""

from __future__ import annotations

import sentry_sdk
from opentelemetry import trace
from opentelemetry.propagate import set_global_textmap
from opentelemetry.sdk.trace import TracerProvider
from sentry_sdk.integrations.opentelemetry import SentryPropagator, SentrySpanProcessor

from tests.error_reporting import *  # noqa: F403
from tests.error_reporting import ToFile

sentry_sdk.init(
    dsn="http://public@localhost/1",
    transport=ToFile,
    traces_sample_rate=1.0,
    instrumenter="otel",
)
provider = TracerProvider()
provider.add_span_processor(SentrySpanProcessor())
trace.set_tracer_provider(provider)
set_global_textmap(SentryPropagator())
