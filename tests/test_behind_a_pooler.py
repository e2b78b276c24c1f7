"""Web processes and commands behind PgBouncer in transaction mode leave its connections alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.transaction import atomic
from django.test import Client

from taskqueue import control
from taskqueue.monitoring import doctor, health
from taskqueue.monitoring.overview import overview
from tests.conftest import require_tool
from tests.monitoring.test_health import elsewhere
from tests.pooler import PROGRAM, Pooler
from tests.sample import tasks

SIZE = 4
pytestmark = [pytest.mark.postgresql_only, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def pooler(admin_client: Client) -> Iterator[Pooler]:
    """This process connects through it."""
    require_tool(PROGRAM)
    with Pooler(connection.settings_dict, "transaction", size=SIZE) as found:
        connection.close()
        with elsewhere(found.port):
            yield found
            connection.close()


def states(pooler: Pooler) -> list[Any]:
    """Of all its connections at once."""
    with ExitStack() as stack:
        clients = [stack.enter_context(pooler.connect()) for _ in range(SIZE)]
        for client in clients:
            stack.enter_context(client.transaction())
        return [pooler.session_state(client) for client in clients]


def test_enqueues_pages_and_commands_set_nothing_that_outlives_a_transaction(
    pooler: Pooler, admin_client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    before = states(pooler)
    with atomic():
        first = tasks.noop.enqueue()
    tasks.noop.enqueue_many([((), {})] * 3)
    control.cancel(first.id)
    overview()
    assert health.ready().is_ok
    for command in (["list"], ["stats"], ["why", str(first.id)]):
        call_command("taskqueue", *command)
    told = {each.check: each.seen for each in doctor.examine()}
    for page in ("/admin/taskqueue/", "/admin/taskqueue/task/?q=noop", "/api/v1/tasks/"):
        assert admin_client.get(page).status_code == 200
    assert "through a pooler" in told["pooling"]
    assert states(pooler) == before
