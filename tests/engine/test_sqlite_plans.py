"""On SQLite no statement of the engine reads all tasks or all leases, under any Django."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pytest
from django.db import connection

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

MODULES = ("apart", "claim", "duties", "lease", "record", "shared", "wedged")
OF_THE_NEWEST = {"wedged.RECENT_RUNS"}
"""Reads a table from its end, up to a limit."""
SCAN = re.compile(
    r"SCAN (taskqueue_(task|lease)|task|lease|own|open)\b(?! USING (COVERING )?INDEX taskqueue_)"
)


def statements() -> Iterator[tuple[str, str]]:
    for name in MODULES:
        module = importlib.import_module(f"taskqueue.engine.sqlite.{name}")
        for constant, text in vars(module).items():
            if constant.isupper() and isinstance(text, str) and "FROM taskqueue_" in text:
                yield f"{name}.{constant}", text


STATEMENTS = dict(statements())


def test_there_are_statements_to_look_at() -> None:
    assert len(STATEMENTS) > 15


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - OF_THE_NEWEST))
def test_it_reads_by_an_index(name: str) -> None:
    text = STATEMENTS[name]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("%s"))
        plan = [row[3] for row in cursor.fetchall()]
    assert [line for line in plan if SCAN.search(line)] == [], "\n".join(plan)
