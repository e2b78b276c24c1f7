"""Search results can be exported without secrets, formulas, or much of the server's memory."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from taskqueue.admin.tasks import export
from taskqueue.models import Task
from taskqueue.monitoring.exporting import Csv
from taskqueue.monitoring.searching.finding import Effort
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET, Rows
from tests.monitoring.searching.rows import make_tasks
from tests.sample.tasks import add, log_in

EXPORT = reverse("admin:taskqueue_task_export")


def read(client: Client, **asked: str) -> str:
    response = client.get(EXPORT, asked)
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


def as_csv(client: Client, text: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read(client, q=text, format="csv"), newline="")))


def as_json(client: Client, text: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(client, q=text, format="jsonl").splitlines()]


@pytest.mark.parametrize(
    ("role", "status"),
    {"anonymous": 302, "user": 302, "staff": 403, "viewer": 200, "superuser": 200}.items(),
)
def test_only_who_may_view_tasks_may_export_them(
    role: str, status: int, rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as(role)
    assert client.get(EXPORT).status_code == status
    if status == 200:
        assert client.post(EXPORT).status_code == 405
        assert client.head(EXPORT).status_code == 200


def test_a_search_is_exported_whole_in_batches(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(70)
    monkeypatch.setattr(export, "BATCH", 8)
    monkeypatch.setattr(export, "EFFORT", Effort(first=5, windows=2, seconds=60))
    client = log_in_as("viewer")
    newest = list(Task.objects.order_by("-id").values_list("id", flat=True))
    assert [row["id"] for row in as_json(client)] == list(map(str, newest))
    some = Task.objects.filter(name="shop.pay", status="ready").order_by("-id")
    for found in (
        as_csv(client, "name:shop.pay status:ready"),
        as_json(client, "pay status:ready"),
    ):
        assert [row["id"] for row in found] == [str(task.id) for task in some]


def test_a_batch_is_one_short_query_and_memory_is_bounded(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tasks(70)
    monkeypatch.setattr(export, "BATCH", 10)
    client = log_in_as("viewer")
    with CaptureQueriesContext(connection) as queries:
        rows = as_json(client)
    batches = [query["sql"] for query in queries if "LIMIT 11" in query["sql"]]
    assert len(batches) == 7
    assert not any("OFFSET" in query["sql"] for query in queries)
    assert len(rows) == 70


def test_an_export_ends_at_its_limit(log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tasks(30)
    monkeypatch.setattr(export, "BATCH", 8)
    monkeypatch.setattr(export, "MOST_ROWS", 20)
    *rows, last = as_json(log_in_as("viewer"))
    assert len(rows) == 20
    assert last["is_incomplete"] is True


def test_sensitive_arguments_are_in_no_export(rows: Rows, log_in_as: LogIn) -> None:
    log_in.enqueue(user="bob", password=SECRET)
    client = log_in_as("superuser")
    for form in ("csv", "jsonl"):
        text = read(client, format=form)
        assert SECRET not in text
        assert "[redacted]" in text
        assert "bob" in text


def test_arguments_of_unknown_definitions_are_left_out(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.update(name="shop.gone")
    client = log_in_as("viewer")
    [row] = as_json(client)
    assert row["args"] is None
    assert row["kwargs"] is None
    assert as_csv(client)[0]["args"] == ""


def test_users_who_may_view_arguments_export_them(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.update(name="shop.gone")
    [row] = as_json(log_in_as("viewer", "view_task", "view_arguments"))
    assert SECRET in row["args"]


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t", "\n", "\u3000", "\ufeff", "\xa0"])
@pytest.mark.parametrize("sign", list("=+-@＝＋－＠"))  # noqa: RUF001
def test_no_cell_is_a_formula_for_its_blanks_or_its_full_width_sign(blank: str, sign: str) -> None:
    line = Csv().rows([{"unique_key": f"{blank}{sign}1+1", "priority": -5}])
    assert next(csv.reader([line])) == [f"'{blank}{sign}1+1", "-5"]


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u202a\u202b\u202c\u202d\u202e\u2061"
    "\u2066\u2067\u2068\u2069\u2800\u3164\ufe0f\uffa0\ufffe\x7f\x85\U000e0020\U000e0100"
)


@pytest.mark.parametrize("sign", list("=+-@＝＋－＠﹢﹣﹦﹫⁼₌−"))  # noqa: RUF001
def test_no_cell_is_a_formula_behind_characters_that_are_not_seen(sign: str) -> None:
    for start in ["", *INVISIBLE, " \u00ad\u3164", "\u202e\x7f\u2800 "]:
        line = Csv().rows([{"unique_key": f"{start}{sign}1+1"}])
        assert next(csv.reader([line])) == [f"'{start}{sign}1+1"], ascii(start)


@pytest.mark.parametrize("text", ["\u00ada=1", "\u3164", "é=1", "\u2013 1", "\u202eb"], ids=ascii)
def test_a_text_after_invisible_characters_is_exported_unchanged(text: str) -> None:
    line = Csv().rows([{"unique_key": text, "priority": 1}])
    assert next(csv.reader([line])) == [text, "1"]


@pytest.mark.parametrize("text", [" a=1", "a", "", "  ", "１＋１", "(=1)"])  # noqa: RUF001
def test_a_text_that_is_no_formula_is_exported_unchanged(text: str) -> None:
    line = Csv().rows([{"unique_key": text, "priority": 1}])
    assert next(csv.reader([line])) == [text, "1"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_is_a_formula(start: str, log_in_as: LogIn) -> None:
    add.using(unique_key=f"{start}1+1", priority=-5).enqueue(1)
    client = log_in_as("viewer")
    [row] = as_csv(client)
    assert row["unique_key"] == f"'{start}1+1"
    assert row["priority"] == "-5"
    [whole] = as_json(client)
    assert whole["unique_key"] == f"{start}1+1"
    assert whole["priority"] == -5
    assert whole["args"] == [1]


def test_text_of_any_kind_comes_through(log_in_as: LogIn) -> None:
    odd = 'a "b", c; é☃\u2028\x85'
    add.using(unique_key=odd, metadata={"n": odd}).enqueue(1)
    client = log_in_as("viewer")
    assert as_csv(client)[0]["unique_key"] == odd
    line = read(client, format="jsonl").split("\n")[0]
    assert json.loads(line)["metadata"] == {"n": odd}


def test_an_invalid_search_or_format_is_refused(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    for asked in ({"q": "stauts:x"}, {"format": "xml"}, {"q": "a\x00"}):
        response = client.get(EXPORT, asked)
        assert response.status_code == 400, asked
        assert response["Content-Type"].startswith("text/plain")


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_server_is_given_an_asynchronous_stream(log_in_as: LogIn) -> None:
    """It would read an ordinary one to its end before it sent anything."""
    add.enqueue(1)
    known = log_in_as("viewer")

    async def ask() -> bytes:
        client = AsyncClient()
        client.cookies = known.cookies
        response: Any = await client.get(EXPORT, {"format": "jsonl"})
        assert response.is_async
        read = b"".join([part async for part in response.streaming_content])
        await sync_to_async(connections.close_all)()  # Those of the thread that it was read in.
        return read

    assert json.loads(asyncio.run(ask()))["name"] == add.name
