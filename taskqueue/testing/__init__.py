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
        assert_enqueued,
        assert_enqueues,
        assert_not_enqueued,
        captured,
    )
    from taskqueue.testing.attempts import Crash
    from taskqueue.testing.cases import TaskQueueTestMixin
    from taskqueue.testing.immediacy import eager
    from taskqueue.testing.journeys import travelling
    from taskqueue.testing.live import live_worker
    from taskqueue.testing.looking import aenqueued, enqueued
    from taskqueue.testing.running import Run, StillDue, arun_due, arun_next, run_due, run_next

_HOMES = {
    "asserting": (
        "aassert_enqueued aassert_not_enqueued assert_enqueued assert_enqueues assert_not_enqueued"
        " captured"
    ),
    "attempts": "Crash",
    "cases": "TaskQueueTestMixin",
    "immediacy": "eager",
    "live": "live_worker",
    "looking": "aenqueued enqueued",
    "running": "Run StillDue arun_due arun_next run_due run_next",
    "journeys": "travelling",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Crash",
    "Run",
    "StillDue",
    "TaskQueueTestMixin",
    "aassert_enqueued",
    "aassert_not_enqueued",
    "aenqueued",
    "arun_due",
    "arun_next",
    "assert_enqueued",
    "assert_enqueues",
    "assert_not_enqueued",
    "captured",
    "eager",
    "enqueued",
    "live_worker",
    "run_due",
    "run_next",
    "travelling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
