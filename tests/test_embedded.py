"""A worker that a script starts, waits for, and ends."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

import taskqueue
from taskqueue import TaskQueueError
from taskqueue import Worker as EmbeddedWorker
from taskqueue.models import Worker
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_it_works_until_the_results_are_there_and_then_signs_off() -> None:
    results = add.enqueue_many([((number,), {}) for number in range(3)])
    worker = EmbeddedWorker(concurrency=1, pool="thread", name="embedded")
    worker.run(until=results, timeout=60)
    assert [result.status for result in results] == ["succeeded"] * 3
    assert worker.pid is None
    assert Worker.objects.get(name="embedded").status == "stopped"


@pytest.mark.slow
def test_it_works_in_a_block_and_until_it_has_drained() -> None:
    noop.using(run_after=3600).enqueue()
    with EmbeddedWorker(concurrency=1) as worker:
        assert worker.pid is not None
        assert add.enqueue(1).wait(timeout=60).status == "succeeded"
        with pytest.raises(TaskQueueError, match="works already"):
            worker.run(until=1)
    left = add.enqueue(2)
    EmbeddedWorker(concurrency=1).run(until="drained", timeout=60)
    left.refresh()
    assert left.status == "succeeded"


@pytest.mark.slow
def test_an_embedded_worker_reports_a_failed_start_and_a_timeout() -> None:
    with pytest.raises(TaskQueueError, match="exit code 1"):
        EmbeddedWorker(queues="no queue!").run(until=60)
    with pytest.raises(TimeoutError):
        EmbeddedWorker(concurrency=1).run(until=lambda: False, timeout=0.2)


@pytest.mark.slow
def test_one_that_is_ended_while_it_starts_has_ended_well() -> None:
    EmbeddedWorker(concurrency=1).run(until=lambda: True, timeout=60)


def test_it_refuses_what_it_cannot_wait_for() -> None:
    for until in ("drain", [7], object()):
        with pytest.raises(TypeError, match="until must"):
            EmbeddedWorker().run(until=until)  # type: ignore[arg-type]


def test_it_is_refused_where_it_would_see_nothing() -> None:
    with transaction.atomic(), pytest.raises(ImproperlyConfigured, match="transaction"):
        EmbeddedWorker().start()


def test_its_name_is_public_and_loaded_late() -> None:
    assert "Worker" in taskqueue.__all__
