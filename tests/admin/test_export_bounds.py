"""An export sends its heading at once, searches for some seconds, and few run at a time."""

from __future__ import annotations

import csv
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.admin.tasks import export
from taskqueue.engine import exports
from taskqueue.engine.connections import project_connection
from taskqueue.engine.exports import begin_export, end_export, renew_export
from taskqueue.models import Export, Task
from taskqueue.monitoring.searching.finding import Effort
from tests.admin.conftest import LogIn
from tests.admin.test_export import EXPORT, read
from tests.monitoring.searching.rows import make_tasks


def begin(client: Client, **asked: str) -> Any:
    """An export of which nothing has been read."""
    return client.get(EXPORT, asked)


def elsewhere() -> None:
    """Let all exports that run be those of other processes."""
    Export.objects.filter(token__isnull=False).update(process="elsewhere:1")


def test_the_heading_is_sent_before_anything_is_searched(log_in_as: LogIn) -> None:
    make_tasks(3)
    pieces = iter(begin(log_in_as("viewer"), q="metadata.tenant:nobody").streaming_content)
    with CaptureQueriesContext(connection) as queries:
        assert next(pieces).startswith(b"id,name,queue_name")
    assert not queries.captured_queries
    assert list(pieces) == []


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("search", ["metadata.tenant:nobody", "name:shop.pay"])
def test_a_search_that_takes_long_says_where_to_continue(
    form: str, search: str, log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(70)
    monkeypatch.setattr(export, "BATCH", 8)
    monkeypatch.setattr(export, "EFFORT", Effort(first=5, growth=1, windows=2, seconds=60))
    monkeypatch.setattr(export, "MOST_SECONDS", 0.0)
    client, found, asked, requests = log_in_as("viewer"), [], {"q": search, "format": form}, 0
    while True:
        text, requests = read(client, **asked), requests + 1
        if form == "csv":
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            last = rows[-1]["id"] if rows else ""
            is_cut, address = last.startswith("# This export is incomplete."), last.split(" ")[-1]
        else:
            rows = [json.loads(line) for line in text.splitlines()]
            is_cut = bool(rows) and "is_incomplete" in rows[-1]
            address = rows[-1]["continue"] if is_cut else ""
        found += [row["id"] for row in (rows[:-1] if is_cut else rows)]
        if not is_cut:
            break
        assert address.startswith("http://testserver" + EXPORT)
        asked = dict(param.split("=", 1) for param in address.partition("?")[2].split("&"))
        asked["q"] = search
    expected = Task.objects.none()
    if search.startswith("name"):
        expected = Task.objects.filter(name="shop.pay").order_by("-id")
    assert found == [str(task.id) for task in expected]
    assert 2 < requests < 70


def test_the_time_that_a_client_takes_to_read_does_not_count(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(30)
    monkeypatch.setattr(export, "BATCH", 8)
    pieces = iter(begin(log_in_as("viewer"), format="jsonl").streaming_content)
    lines = b""
    for piece in pieces:
        lines += piece
        later = time.monotonic() + export.MOST_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda later=later: later)
    assert len(lines.splitlines()) == 30


def test_a_client_that_reads_slowly_leaves_its_place_to_others(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(30)
    monkeypatch.setattr(export, "BATCH", 1)
    client, other = log_in_as("viewer"), Client()
    other.force_login(User.objects.create_superuser("other"))
    began, lines = time.monotonic(), list[bytes]()
    for number, piece in enumerate(begin(client, format="jsonl").streaming_content):
        lines += piece.splitlines()
        assert begin(other).status_code == 429
        now = began + 50 * (number + 1)
        monkeypatch.setattr(time, "monotonic", lambda now=now: now)
    last = json.loads(lines.pop())
    assert last["is_incomplete"] is True
    assert 1 <= len(lines) <= 3, "for 120 s"
    monkeypatch.undo()
    assert len(read(other, format="jsonl").splitlines()) == 30
    rest = b"".join(
        client.get(last["continue"].removeprefix("http://testserver")).streaming_content
    )
    assert len({json.loads(line)["id"] for line in [*lines, *rest.splitlines()]}) == 30


def test_an_export_refuses_to_continue_from_an_unknown_place(log_in_as: LogIn) -> None:
    assert begin(log_in_as("viewer"), before="nowhere").status_code == 400


def test_a_user_has_one_export_at_a_time(log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    running = begin(client)
    elsewhere()
    refused = begin(client)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert b"try again in" in refused.content
    assert client.head(EXPORT).status_code == 200
    b"".join(running.streaming_content)
    assert read(client)


def test_a_process_has_one_export_at_a_time_and_all_have_few(db: None) -> None:
    users = [Client() for _ in range(exports.MOST + 1)]
    for number, client in enumerate(users):
        client.force_login(User.objects.create_superuser(f"user {number}"))
    for client in users[:-1]:
        running = begin(client)
        assert running.status_code == 200
        assert begin(users[-1]).status_code == 429
        elsewhere()
    assert begin(users[-1]).status_code == 429
    b"".join(running.streaming_content)
    assert begin(users[-1]).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_who_goes_away_leaves_the_place(log_in_as: LogIn) -> None:
    make_tasks(3)
    client = log_in_as("viewer")
    begin(client).close()
    running = begin(client)
    next(iter(running.streaming_content))
    running.close()
    assert begin(client).status_code == 200


def test_the_place_of_a_process_that_died_is_free_after_a_while(log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    begin(client)
    assert begin(client).status_code == 429
    Export.objects.update(expires_at=F("expires_at") - exports.KEPT - timedelta(seconds=1))
    assert begin(client).status_code == 200


def test_an_export_that_has_lost_its_place_ends(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(30)
    monkeypatch.setattr(export, "BATCH", 8)
    monkeypatch.setattr(export, "KEPT", timedelta(0))
    running = begin(log_in_as("viewer"), format="jsonl")
    Export.objects.update(token=None)
    lines = b"".join(running.streaming_content).splitlines()
    assert len(lines) == 9
    assert json.loads(lines[-1])["is_incomplete"] is True


@pytest.mark.django_db
def test_a_place_that_is_renewed_stays_taken() -> None:
    token = begin_export(project_connection(), actor="ann")
    assert token is not None
    soon = timezone.now() + timedelta(seconds=1)
    Export.objects.update(expires_at=soon)
    assert renew_export(project_connection(), token)
    assert Export.objects.get(token=token).expires_at > soon
    end_export(project_connection(), token)
    assert not renew_export(project_connection(), token)


@pytest.mark.django_db(transaction=True)
def test_of_many_that_begin_at_once_no_more_than_may_run_do() -> None:
    many = 6
    ready = Barrier(many)

    def begin_with_others(number: int) -> bool:
        try:
            ready.wait()
            return begin_export(project_connection(), actor=f"user {number}") is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(many) as threads:
        began = list(threads.map(begin_with_others, range(many)))
    assert sum(began) == 1, "of one process"
