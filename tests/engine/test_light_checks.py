"""Expressions that PostgreSQL parses anew for each statement on a hot table are short."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue.engine.postgresql.enqueue import INSERT_PLAIN
from taskqueue.engine.specs import PLAIN_PARAMETERS
from taskqueue.engine.statement import fetch

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql_only]
CHECKS = """
SELECT sum(length(conbin::text)) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'
"""
# The bit 4 stands for INSERT.
CONDITIONS = """
SELECT sum(length(tgqual::text))
FROM pg_trigger
WHERE tgrelid = %s::regclass AND NOT tgisinternal AND tgtype & 4 > 0
"""
PARAMETERS = "SELECT proargnames FROM pg_proc WHERE proname = 'taskqueue_enqueue'"


@pytest.mark.parametrize(
    ("statement", "table", "most"),
    [
        # As Django words them they would take 8,409 and 3,562 characters.
        (CHECKS, "taskqueue_task", 4_000),
        (CHECKS, "taskqueue_lease", 1_700),
        (CONDITIONS, "taskqueue_task", 1_000),
        (CONDITIONS, "taskqueue_lease", 500),
    ],
)
def test_the_conditions_of_a_hot_table_are_short(statement: str, table: str, most: int) -> None:
    length = fetch(connection, statement, (table,))[0][0]
    assert length is not None
    assert length < most


def test_an_arrival_has_no_check() -> None:
    assert fetch(connection, CHECKS, ("taskqueue_arrival",)) == [(None,)]


def test_a_call_gives_the_parameters_of_the_procedure_in_their_order() -> None:
    assert INSERT_PLAIN.endswith("({arguments}, statement_timestamp(), NULL)")
    wanted = [*PLAIN_PARAMETERS, "enqueued_at", "microseconds"]
    assert fetch(connection, PARAMETERS) == [(wanted,)]
