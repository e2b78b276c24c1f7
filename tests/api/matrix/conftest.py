"""The rows and the clients of the matrix, made once for all its cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback

from taskqueue import schedules
from tests.admin.everything import Everything, everything
from tests.admin.matrix.roles import Clients, telling_sets
from tests.admin.matrix.stored import before
from tests.api.matrix.cells import exposed_task
from tests.api.matrix.table import ASKS
from tests.sample.tasks import greet

__all__ = ["before"]


@pytest.fixture(scope="module")
def _database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A transaction around those of the module's tests, whose end leaves nothing."""
    with django_db_blocker.unblock(), atomic():
        yield
        set_rollback(True)


@pytest.fixture(scope="module")
def made(_database: None) -> Everything:
    """A row of each kind and state."""
    made = everything("plain")
    made.rows["exposed type"] = greet
    for name in ("schedule", "paused schedule"):  # What the API runs is of such a type.
        schedules.edit(made.row(name).name, task=greet, args=["Ann"], kwargs={}, options={})
    made.rows["exposed task"] = exposed_task(made)
    return made


@pytest.fixture(scope="module")
def clients(_database: None) -> Clients:
    """Whoever knocks."""
    return Clients(each for _, ask in ASKS for each in telling_sets([[ask.needs]]).values())


@pytest.fixture(autouse=True)
def _without_throttles(settings: Any) -> None:
    """Hundreds of requests a second are asked for here."""
    settings.TASKQUEUE = {"API_THROTTLE_RATES": {"read": None, "act": None, "enqueue": None}}
