"""What bodies do to their connection, within a test's transaction and where tests commit."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.transaction import TransactionManagementError

from taskqueue import current
from taskqueue.models import Task
from taskqueue.testing import run_due
from tests.sample.models import Effect
from tests.testing.bodies import perform, play


def close_it() -> int:
    _leave_a_mark()
    connection.close()
    _leave_a_mark()
    return Effect.objects.count()


def _leave_a_mark() -> None:
    Effect.objects.create(task_id=current().task_id, attempt=1)


def lock_a_row() -> None:
    Task.objects.select_for_update().first()


@pytest.mark.django_db
def test_a_body_may_close_its_connection() -> None:
    play["x"] = close_it
    perform.enqueue("x")
    assert [(run.outcome, run.result.return_value) for run in run_due()] == [("succeeded", 2)]
    assert Effect.objects.count() == 2
    assert "close" not in vars(connection)


@pytest.mark.django_db(transaction=True)
def test_a_body_may_close_its_connection_where_tests_commit() -> None:
    play["x"] = close_it
    perform.enqueue("x")
    assert [(run.outcome, run.result.return_value) for run in run_due()] == [("succeeded", 2)]


@pytest.mark.postgresql_only
@pytest.mark.django_db
def test_a_lock_without_a_transaction_is_not_found_out_within_one() -> None:
    play["x"] = lock_a_row
    perform.enqueue("x")
    assert [run.outcome for run in run_due()] == ["succeeded"]


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_lock_without_a_transaction_is_found_out_where_tests_commit() -> None:
    play["x"] = lock_a_row
    perform.enqueue("x")
    with pytest.raises(TransactionManagementError):
        run_due(errors="raise")
