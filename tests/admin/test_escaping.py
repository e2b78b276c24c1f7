"""Hostile text in every field is shown as text by every page, fragment and export."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue.admin.reports import HEADER
from taskqueue.models import Task
from tests.admin.everything import Everything, everything
from tests.admin.markup import Markup
from tests.admin.matrix.cells import act_address, address, filled_in
from tests.admin.matrix.table import PAGES
from tests.admin.pages import ROWS, text_of, variants
from tests.admin.schedule_rows import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
EVIL = f"javascript:alert(1)//{MARKUP}{{{{7*7}}}}\u202e"
"""No longer than the name of a queue may be, with a word behind it."""
FORMULA = '=HYPERLINK("http://evil.example")'
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n")
MODELS = (
    "task", "lease", "tasklog", "worker", "queue", "schedule", "occurrence", "audit", "operation",
)  # fmt: skip
FIELDS = sorted({
    *filled(), "verb", "reason", "minutes", "next", "run_after", "max_attempts", "timeout",
    "arg_args", "arg_kwargs", "arg_rest", "unique_key", "ids", "q", "action", "_selected_action",
})  # fmt: skip
CHOICES = ("verb", "action", "_selected_action", "ids", "confirmed", "post")
ROUTES = [route for route in sorted(PAGES) if PAGES[route].look]


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """Rows full of hostile text, and what the admin's own history says of them."""
    with django_db_blocker.unblock(), atomic():
        rows = everything(EVIL)
        rows.rows["user"] = User.objects.create_superuser("root", first_name=EVIL[:150])
        _remember(rows)
        yield rows
        set_rollback(True)


def _remember(made: Everything) -> None:
    """Entries of the admin's own history, one for each row."""
    user = made.rows["user"]
    for row in (*made.tasks.values(), *made.rows.values()):
        LogEntry.objects.create(
            user=user, content_type=ContentType.objects.get_for_model(type(row)),
            object_id=str(row.pk), object_repr=made.text[:200], action_flag=CHANGE,
            change_message=made.text,
        )  # fmt: skip


@pytest.fixture
def client(made: Everything) -> Client:
    """Who sees everything."""
    client = Client()
    client.force_login(made.rows["user"])
    return client


@pytest.mark.parametrize("route", ROUTES)
def test_no_page_takes_text_for_markup(route: str, made: Everything, client: Client) -> None:
    for url, query in variants(route, made):
        response = client.get(url, query)
        assert response.status_code in (200, 302, 400, 404, PAGES[route].answers), (url, query)
        text_of(response)  # An export that nobody reads keeps its place.
        _check(response)
        if b"refresh.js" in getattr(response, "content", b""):
            _check(client.get(url, query, headers={"X-Requested-With": HEADER}))


def _check(response: Any) -> None:
    """As text it may stand anywhere: what a page is made of, it is nowhere."""
    if response.headers.get("Content-Type", "").startswith("text/html"):
        html = text_of(response)
        assert Markup(html).violations == []
        assert "<script>alert" not in html
        assert "onerror=alert(2)>" not in html


@pytest.mark.parametrize("model", MODELS)
def test_the_page_of_a_row_shows_markup_as_text(
    model: str, made: Everything, client: Client
) -> None:
    for row in ROWS.get(model, (model,)):
        response = client.get(address(f"{model}/<path:object_id>/change/", row, made))
        assert MARKUP in "".join(Markup(text_of(response)).text), row


def test_invalid_posted_values_are_shown_again_as_text(made: Everything, client: Client) -> None:
    wrong = dict.fromkeys(FIELDS, made.text)
    for route, page in PAGES.items():
        for act in page.acts:
            right = {name: value for name, value in act.body.items() if name in CHOICES}
            body = {**wrong, **filled_in(right, made)}
            answer = client.post(act_address(route, act, made), body, follow=True)
            assert answer.status_code in (200, 400, 404), (route, act.name)
            _check(answer)


def test_a_table_takes_no_text_for_a_formula(made: Everything, client: Client) -> None:
    tasks = Task.objects.all()
    tasks.update(name=FORMULA, queue_name="-1+1", error_class="@SUM(1)", error_message="\t=1")
    for lead in ("=", "+", "-", "@", "\t", "\r", "\n"):
        tasks.filter(status="failed").update(unique_key=f"{lead}1", metadata=f"{lead}1")
        answer = client.get("/admin/taskqueue/task/export/", {"format": "csv"})
        lines = list(csv.reader(StringIO(text_of(answer), newline="")))
        assert len(lines) == 1 + tasks.count()
        cells = [cell for line in lines for cell in line]
        assert "'" + FORMULA in cells
        assert [cell for cell in cells if cell.startswith(RISKY)] == []


def test_a_json_lines_export_holds_markup_unchanged(made: Everything, client: Client) -> None:
    answer = client.get("/admin/taskqueue/task/export/", {"format": "jsonl"})
    assert not answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    lines = [json.loads(line) for line in text_of(answer).split("\n") if line]
    assert {line["queue_name"] for line in lines} == {made.text}
