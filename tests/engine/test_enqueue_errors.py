"""A refusal of the database at an enqueue reaches the caller as one of Django's errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction

from taskqueue.models import Task
from tests.sample.tasks import add


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "enqueue",
    [lambda: add.enqueue(1), lambda: add.enqueue_many([((1,), {})] * 3)],
    ids=["enqueue", "enqueue_many"],
)
def test_an_enqueue_into_a_read_only_database_raises_djangos_error(
    enqueue: Callable[[], object],
) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(DatabaseError, match="read-only transaction"):
            enqueue()
        transaction.set_rollback(True)

    assert not Task.objects.exists()
