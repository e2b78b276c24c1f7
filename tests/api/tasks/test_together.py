"""Requests that meet each other, or a worker that records what they are about."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.transaction import atomic

from taskqueue.models import Audit, Lease, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.test_detail import path
from tests.engine.steps import claim_one, run_at_once
from tests.sample.rest_tasks import order, tell
from tests.sample.tasks import echo
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def logged_in(count: int) -> list[ApiClient]:
    """Clients of one user: threads share none."""
    user = User.objects.create_superuser("root")
    clients = [ApiClient() for _ in range(count)]
    for client in clients:
        client.force_login(user)
    return clients


def test_of_two_who_have_seen_the_same_one_changes_it() -> None:
    result = echo.enqueue()
    clients, answers = logged_in(2), []
    etag = clients[0].look(path(result))["ETag"]
    together = Barrier(2)

    def change(number: int) -> None:
        together.wait(60)
        terms = {"priority": 10 + number}
        answers.append(clients[number].ask("PATCH", path(result), terms, If_Match=etag))

    run_at_once([lambda: change(0), lambda: change(1)])
    assert sorted(each.status_code for each in answers) == [200, 412]
    done = next(each for each in answers if each.status_code == 200)
    assert Task.objects.get().priority == done.json()["priority"]
    assert Audit.objects.count() == 1


@pytest.mark.postgresql_only
def test_bulk_enqueues_of_the_same_keys_in_other_orders_close_no_circle() -> None:
    clients, answers = logged_in(2), []
    keys = [f"key {number}" for number in range(20)]
    names = [tell.name, order.name]
    together = Barrier(2)

    def enqueue(number: int) -> None:
        own = keys if number else keys[::-1]
        tasks = [
            {"name": names[(place + number) % 2], "args": [1], "unique_key": key}
            for place, key in enumerate(own)
        ]
        together.wait(60)
        answers.append(clients[number].act("tasks/bulk/", {"tasks": tasks}))

    run_at_once([lambda: enqueue(0), lambda: enqueue(1)])
    assert sorted(each.status_code for each in answers) == [200, 201]
    assert Task.objects.count() == len(keys)


@pytest.mark.postgresql_only
def test_who_changes_what_it_has_seen_waits_for_the_lease_and_holds_no_task() -> None:
    """Whoever records has the lease first: to hold the task meanwhile would close a circle."""
    result = echo.enqueue()
    claimed = claim_one()
    (client,) = logged_in(1)
    etag, answers = client.look(path(result))["ETag"], []

    def stop() -> None:
        answers.append(client.act(path(result, "stop/"), If_Match=etag))
        connections.close_all()

    thread = Thread(target=stop, daemon=True)
    with atomic():
        list(Lease.objects.filter(id=claimed.lease_id).select_for_update())
        thread.start()
        wait_until(_somebody_waits, timeout=60)
        list(Task.objects.filter(id=result.id).select_for_update(nowait=True))
    thread.join(60)
    assert [each.status_code for each in answers] == [202]


def _somebody_waits() -> Any:
    # Not by pg_stat_activity, which stays as it was first seen until the transaction ends.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]
