"""On SQLite no statement of the engine reads all tasks or all leases, under any Django."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from taskqueue.engine.statement import Fact, Moment, Statement

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

DIALECT = ("claim", "duties", "record")
ROOMS = (
    "apart", "broadcast", "ends", "forecast", "live_changes", "multi_worker", "multi_worker_task",
    "takeover", "wedged", "workers", "operations.serving", "schedules.serving",
)  # fmt: skip
OF_THE_NEWEST = {"wedged.RECENT_RUNS"}
"""Reads a table from its end, up to a limit."""
SCAN = re.compile(
    r"SCAN (taskqueue_(task|lease)|task|lease|own|open)\b(?! USING (COVERING )?INDEX taskqueue_)"
)
NAMED = re.compile(r"%\((\w+)\)s")


def statements() -> Iterator[tuple[str, str]]:
    for name in DIALECT:
        for constant, text in constants(f"sqlite.{name}"):
            if isinstance(text, str) and "FROM taskqueue_" in text:
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
