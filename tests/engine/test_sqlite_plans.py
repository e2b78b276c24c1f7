"""On SQLite no statement of the engine reads all tasks or all leases, under any Django."""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import connection

from taskqueue.engine.statement import Fact, Moment, Statement
from taskqueue.engine.surplus import HAS_COUNTED

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

DIALECT = ("claim", "duties", "limit_count", "limit_lock", "limit_take", "record", "reports")
ROOMS = (
    "apart", "broadcast", "ends", "forecast", "live_changes", "multi_worker", "multi_worker_task",
    "pruning", "surplus", "takeover", "wedged", "workers", "operations.serving",
    "schedules.serving", "limits.lanes", "limits.making", "limits.sweeping",
)  # fmt: skip
OF_THE_NEWEST = {"wedged.RECENT_RUNS"}
"""Reads a table from its end, up to a limit."""
SCAN = re.compile(
    r"SCAN (taskqueue_(task|lease)|task|lease|own|open)\b(?! USING (COVERING )?INDEX taskqueue_)"
)
STORED = re.compile(r"(FROM|JOIN|UPDATE) taskqueue_")
# Parts of statements, in brackets: they are looked at where they stand.
PART = re.compile(r"\(")
OF_EACH_BATCH = re.compile(
    r"sqlite\.(claim|record|reports)\.|sqlite\.duties\.(RENEW|STATUSES|SEE_STOPS)"
)
NAMED = re.compile(r"%\((\w+)\)s")


def statements() -> Iterator[tuple[str, str]]:
    for name in DIALECT:
        for constant, text in constants(f"sqlite.{name}"):
            is_whole = isinstance(text, str) and not PART.match(text)
            if is_whole and STORED.search(text):
                yield f"sqlite.{name}.{constant}", text
    for name in ROOMS:
        for constant, statement in constants(name):
            if isinstance(statement, Moment | Fact):
                yield f"{name}.{constant}", f"SELECT ({statement.sqlite})"
            elif isinstance(statement, Statement):
                yield f"{name}.{constant}", statement.sqlite


def constants(module: str) -> Iterator[tuple[str, Any]]:
    found = vars(importlib.import_module(f"taskqueue.engine.{module}"))
    return ((name, value) for name, value in found.items() if name[0] != "_" and name.isupper())


STATEMENTS = dict(statements())


def test_there_are_statements_to_look_at() -> None:
    assert len(STATEMENTS) > 30


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - OF_THE_NEWEST))
def test_it_reads_by_an_index(name: str) -> None:
    text = STATEMENTS[name]
    with connection.cursor() as cursor:
        parameters: Any = dict.fromkeys(NAMED.findall(text)) or [None] * text.count("%s")
        cursor.execute(f"EXPLAIN QUERY PLAN {text}", parameters)
        plan = [row[3] for row in cursor.fetchall()]
    assert [line for line in plan if SCAN.search(line)] == [], "\n".join(plan)


@pytest.fixture(scope="module", params=[10, 1000])
def once_analyzed(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> Iterator[sqlite3.Connection]:
    """The schema, with statistics from when there were few tasks and leases."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE name LIKE 'taskqueue_%' AND sql <> ''")
        texts = [row[0] for row in cursor.fetchall()]
    with closing(sqlite3.connect(":memory:")) as scratch:
        for text in sorted(texts, key=lambda text: "INDEX" in text[:20]):  # Tables come first.
            scratch.execute(text)
        scratch.execute("ANALYZE")
        scratch.execute(
            """
            INSERT INTO sqlite_stat1
            SELECT tbl_name, name, ? || ' 1 1 1 1 1'
            FROM sqlite_master
            WHERE type = 'index' AND tbl_name IN ('taskqueue_task', 'taskqueue_lease')
            """,
            (str(request.param),),
        )
        scratch.execute("ANALYZE sqlite_schema")
        yield scratch


@pytest.mark.parametrize("name", sorted(filter(OF_EACH_BATCH.match, STATEMENTS)))
def test_it_reads_by_an_index_when_statistics_are_stale(
    name: str, once_analyzed: sqlite3.Connection
) -> None:
    text = NAMED.sub("NULL", STATEMENTS[name]).replace("%s", "NULL")
    plan = [row[3] for row in once_analyzed.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert [line for line in plan if SCAN.search(line)] == [], "\n".join(plan)


def test_the_look_for_tasks_of_which_a_number_is_kept_reads_their_index_alone() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN SELECT ({HAS_COUNTED.sqlite})")
        plan = [row[3] for row in cursor.fetchall() if "taskqueue_task" in row[3]]
    assert plan == ["SEARCH taskqueue_task USING INDEX taskqueue_task_kept"]
