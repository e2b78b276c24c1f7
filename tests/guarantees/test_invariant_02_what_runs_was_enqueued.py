"""Invariant 2: a rolled-back enqueue never runs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import transaction

from taskqueue.models import Task
from tests.conftest import StartWorker
from tests.guarantees.history import Journal
from tests.sample import worker_tasks

pytestmark = pytest.mark.slow


class ChangedMind(Exception):
    """Rolls a transaction back."""


def test_a_rolled_back_enqueue_never_runs_though_workers_wait_for_it(
    start_worker: StartWorker, journal: Journal
) -> None:
    start_worker()
    path = str(journal.path)
    committed = []
    for number in range(30):
        with transaction.atomic():
            committed.append(worker_tasks.work.enqueue(path, 0))
        with suppress(ChangedMind), transaction.atomic():
            worker_tasks.work.enqueue(path, 0)
            worker_tasks.work.enqueue_many([((path, 0), {})] * (number % 3))
            raise ChangedMind

    for result in committed:
        assert result.wait(60).status == "succeeded"
    expected = {result.id for result in committed}
    assert set(journal.starts()) == expected
    assert set(Task.objects.values_list("id", flat=True)) == expected


def test_nothing_of_an_open_transaction_runs_before_its_commit(
    start_worker: StartWorker, journal: Journal
) -> None:
    start_worker()
    path = str(journal.path)
    with transaction.atomic():
        inside = worker_tasks.work.enqueue(path, 0)
        assert journal.lines() == []

    assert inside.wait(60).status == "succeeded"
    assert journal.starts() == {inside.id: 1}
