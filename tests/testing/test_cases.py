"""The mixin in test cases of Django's: each method here is a test that a user might write."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import TestCase, TransactionTestCase, override_settings
from django.urls import path

from taskqueue.engine.sqlite import values
from taskqueue.models import Task
from taskqueue.testing import (
    TaskQueueTestMixin,
    arun_due,
    assert_enqueued,
    eager,
    run_due,
    travelling,
)
from taskqueue.testing.journeys import seconds_ahead
from tests.sample.models import Effect
from tests.sample.tasks import add, fail, mark, mark_atomically, noop
from tests.testing.bodies import taken_back


def order(request: HttpRequest) -> HttpResponse:
    """A view that enqueues, and then may fail."""
    result = mark.enqueue("by a view")
    if "fail" in request.GET:
        raise LookupError
    return HttpResponse(result.status)


urlpatterns = [path("order/", order)]


@override_settings(ROOT_URLCONF=__name__)
class ViewTests(TaskQueueTestMixin, TestCase):
    """A view whose request is one transaction."""

    def setUp(self) -> None:
        super().setUp()
        self.client.raise_request_exception = False
        self.enterContext(mock.patch.dict(connection.settings_dict, ATOMIC_REQUESTS=True))

    def test_tasks_that_a_successful_view_enqueues_are_kept(self) -> None:
        with self.assertEnqueues(mark, args=["by a view"]):
            assert self.client.get("/order/").content == b"ready"
        assert [run.status for run in self.run_due()] == ["succeeded"]

    def test_tasks_that_a_failing_view_enqueues_are_rolled_back(self) -> None:
        with self.assertEnqueues(times=0), eager():
            assert self.client.get("/order/?fail").status_code == 500
        assert not Effect.objects.exists()

    def test_eager_tasks_run_in_its_transaction_or_on_its_commit(self) -> None:
        with eager():
            assert self.client.get("/order/").content == b"succeeded"
        with eager(when="commit"), self.captureOnCommitCallbacks(execute=True):
            assert self.client.get("/order/").content == b"ready"
        self.assertEnqueued(mark, status="succeeded", times=2)


class CaseTests(TaskQueueTestMixin, TestCase):
    """In the transaction of a test case."""

    @classmethod
    def setUpTestData(cls) -> None:
        cls.before = add.enqueue(0)

    def test_class_data_is_due_in_each_test(self) -> None:
        assert [run.result for run in self.run_due()] == [self.before]

    def test_an_earlier_test_left_nothing(self) -> None:
        assert [run.result for run in self.run_due(add)] == [self.before]

    def test_methods_assert(self) -> None:
        with self.assertEnqueues(noop):
            noop.enqueue()
        self.assertEnqueued(add, args=[0])
        self.assertNotEnqueued(fail)
        with pytest.raises(AssertionError, match="Enqueued"):
            self.assertEnqueued(fail)

    def test_a_journey_lasts_for_the_test(self) -> None:
        add.using(run_after=timedelta(hours=2)).enqueue(1)
        self.travel(3600)
        self.travel(timedelta(hours=1))
        assert len(self.run_due()) == 2
        self.addCleanup(self._look_whether_it_ended)

    def _look_whether_it_ended(self) -> None:
        """Cleanups run in the opposite order: this one goes before the journey's end."""
        assert values.ahead in (timedelta(0), timedelta(hours=2))

    def test_context_managers_left_open_end_with_the_test(self) -> None:
        case = CaseTests("test_methods_assert")
        case.setUp()
        travelling(3600).start()
        eager().start()
        case.doCleanups()
        assert seconds_ahead() == 0
        assert noop.enqueue().status == "ready"

    def test_a_view_in_a_transaction_that_is_rolled_back(self) -> None:
        with taken_back():
            mark.enqueue()
        assert len(self.run_due()) == 1
        assert not Effect.objects.exists()

    async def test_in_an_async_method(self) -> None:
        result = await mark.aenqueue("async")
        assert [run.status for run in await arun_due()] == ["succeeded", "succeeded"]
        await result.arefresh()
        assert await Effect.objects.acount() == 1


class EagerCaseTests(TaskQueueTestMixin, TestCase):
    """Where tasks run as they are enqueued."""

    eager_tasks = True

    def test_a_task_has_run(self) -> None:
        assert add.enqueue(1).return_value == 2

    async def test_in_an_async_method(self) -> None:
        assert (await add.aenqueue(1)).return_value == 2


class TransactionCaseTests(TransactionTestCase):
    """Where tests commit."""

    def test_bodies_commit(self) -> None:
        mark.enqueue()
        mark_atomically.enqueue()
        assert len(run_due()) == 2
        assert_enqueued(mark, status="succeeded")
        assert Effect.objects.count() == 2
        assert Task.objects.count() == 2
