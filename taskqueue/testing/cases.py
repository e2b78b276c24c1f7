"""A mixin for Django's test cases."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from taskqueue.exceptions import Duration
from taskqueue.results import TaskResult
from taskqueue.testing.asserting import assert_enqueued, assert_enqueues, assert_not_enqueued
from taskqueue.testing.choices import Options, Which
from taskqueue.testing.immediacy import eager
from taskqueue.testing.journeys import travelling
from taskqueue.testing.lasting import leftovers_ended
from taskqueue.testing.looking import Expected
from taskqueue.testing.running import Run, run_due

if TYPE_CHECKING:
    from unittest import TestCase as Base
else:
    Base = object


class TaskQueueTestMixin(Base):
    """The functions of `taskqueue.testing` as methods; journeys and eager mode end with the test.

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

    def run_due(self, *tasks: Which, **options: Unpack[Options]) -> list[Run]:
        """See `taskqueue.testing.run_due`."""
        return run_due(*tasks, **options)

    def assertEnqueued(  # noqa: N802  (named as those of unittest are)
        self, which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
    ) -> list[TaskResult[Any]]:
        """See `taskqueue.testing.assert_enqueued`."""
        return assert_enqueued(which, times=times, **expected)

    def assertNotEnqueued(  # noqa: N802
        self, which: Which | None = None, **expected: Unpack[Expected]
    ) -> None:
        """See `taskqueue.testing.assert_not_enqueued`."""
        assert_not_enqueued(which, **expected)

    def assertEnqueues(  # noqa: N802
        self, which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
    ) -> assert_enqueues:
        """See `taskqueue.testing.assert_enqueues`."""
        return assert_enqueues(which, times=times, **expected)
