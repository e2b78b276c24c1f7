"""The rows and the clients of the matrix, made once for all its cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback

from tests.admin.everything import Everything, everything
from tests.admin.matrix.roles import Clients, telling_sets
from tests.admin.matrix.stored import before
from tests.admin.matrix.table import PAGES

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
    return everything("plain")


@pytest.fixture(scope="module")
def clients(_database: None) -> Clients:
    """Whoever knocks."""
    rules = [page.rules for page in PAGES.values()]
    rules += [[act.needs] for page in PAGES.values() for act in page.acts]
    return Clients(each for rule in rules for each in telling_sets(rule).values())
