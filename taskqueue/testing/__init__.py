"""Tools for the tests of projects: see docs/testing.md.

Importing it loads no models, so that a `conftest.py` may do so before Django is set up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskqueue.testing.asserting import (
        aassert_enqueued,
        aassert_not_enqueued,
        aenqueued,
        assert_enqueued,
        assert_enqueues,
        assert_not_enqueued,
        captured,
        enqueued,
    )
    from taskqueue.testing.attempts import Crash
    from taskqueue.testing.cases import TaskQueueTestMixin
    from taskqueue.testing.enqueued_workflows import (
        aassert_workflow_enqueued,
        assert_workflow_enqueued,
    )
    from taskqueue.testing.graphs import assert_graph
    from taskqueue.testing.immediacy import eager
    from taskqueue.testing.journeys import travelling
    from taskqueue.testing.live import live_worker
    from taskqueue.testing.running import Run, StillDue, arun_due, arun_next, run_due, run_next
    from taskqueue.testing.subscribing import subscribed

_HOMES = (
    "asserting", "attempts", "cases", "enqueued_workflows", "graphs", "immediacy", "journeys",
    "live", "running", "subscribing",
)  # fmt: skip

__all__ = [
    "Crash",
    "Run",
    "StillDue",
    "TaskQueueTestMixin",
    "aassert_enqueued",
    "aassert_not_enqueued",
    "aassert_workflow_enqueued",
    "aenqueued",
    "arun_due",
    "arun_next",
    "assert_enqueued",
    "assert_enqueues",
    "assert_graph",
    "assert_not_enqueued",
    "assert_workflow_enqueued",
    "captured",
    "eager",
    "enqueued",
    "live_worker",
    "run_due",
    "run_next",
    "subscribed",
    "travelling",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
