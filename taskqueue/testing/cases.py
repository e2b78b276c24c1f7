"""A mixin for Django's test cases."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from taskqueue.exceptions import Duration
from taskqueue.testing.asserting import assert_enqueued, assert_enqueues, assert_not_enqueued
from taskqueue.testing.enqueued_workflows import assert_workflow_enqueued
from taskqueue.testing.graphs import assert_graph
from taskqueue.testing.immediacy import eager
from taskqueue.testing.journeys import travelling
from taskqueue.testing.lasting import leftovers_ended
from taskqueue.testing.running import run_due

if TYPE_CHECKING:
    from unittest import TestCase as Base
else:
    Base = object


class TaskQueueTestMixin(Base):
    """`taskqueue.testing` as methods; moved clocks and eager mode end with the test.

    A class with `eager_tasks = True` runs tasks as they are enqueued. List the mixin before
    Django's class: `class Tests(TaskQueueTestMixin, TestCase)`.
    """

    eager_tasks = False

    def setUp(self) -> None:
        """Begin eager mode, if the class asks for it."""
        super().setUp()
        self.enterContext(leftovers_ended())
        if self.eager_tasks:
            self.enterContext(eager())

    def travel(self, to: Duration | datetime) -> None:
        """Move the clock until the end of the test. See `taskqueue.testing.travelling`."""
        self.enterContext(travelling(to))

    run_due = staticmethod(run_due)
    # Named as those of unittest are.
    assertEnqueued = staticmethod(assert_enqueued)  # noqa: N815
    assertNotEnqueued = staticmethod(assert_not_enqueued)  # noqa: N815
    assertEnqueues = assert_enqueues  # noqa: N815
    assertWorkflowEnqueued = staticmethod(assert_workflow_enqueued)  # noqa: N815
    assertGraph = staticmethod(assert_graph)  # noqa: N815
