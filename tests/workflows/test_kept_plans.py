"""Plans of an advance that the server keeps: made over empty tables, they still go by keys."""

from __future__ import annotations

import re

import pytest
from django.db import connection

from taskqueue import chain
from taskqueue.engine.postgresql.workflows import FOLD
from taskqueue.engine.sessions import PLANNING
from taskqueue.engine.step_ends import NOTE
from taskqueue.engine.workflows.dependants import PASS_ON
from taskqueue.engine.workflows.inputs import READ
from taskqueue.engine.workflows.locking import LOCK_WORKFLOWS
from taskqueue.engine.workflows.moves import POSTGRESQL_MOVE, RELEASE_AND_MOVE
from taskqueue.engine.workflows.releases import RELEASE
from taskqueue.engine.workflows.rounds import LEFT_OF
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

KEPT = {
    "fold": FOLD,
    "note": NOTE.postgresql,
    "lock": LOCK_WORKFLOWS.postgresql,
    "pass on": PASS_ON.postgresql,
    "release": RELEASE,
    "move": POSTGRESQL_MOVE,
    "release and move": RELEASE_AND_MOVE,
    "left": LEFT_OF.postgresql,
    "read": READ.postgresql,
}
PARAMETER = re.compile(r"%\((\w+)\)s")
# Of parameters that no cast in a statement tells the type of.
TYPES = {"now": "timestamptz", "few": "int", "size": "int"}
# Of the few workers that sleep.
IDLE = "taskqueue_worker_idle"
TABLES = [
    f"taskqueue_{table}"
    for table in ("step", "stepend", "workflow", "dependency", "member", "task")
]
LEADING = """
    SELECT attname
    FROM pg_index
    JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indexrelid = %s::regclass
"""


# Workflows with ids that grow with the time, as an enqueue makes them; most have ended.
COPIES = """
INSERT INTO taskqueue_workflow
SELECT (jsonb_populate_record(workflow, jsonb_build_object(
    'id', (
        to_char(EXTRACT(epoch FROM clock_timestamp()) * 1000, 'FM000000000000000')
        || substr(translate(gen_random_uuid()::text, '-', ''), 16)
    )::uuid,
    'status', CASE WHEN number % 50 = 0 THEN 'running' ELSE 'succeeded' END
))).*
FROM taskqueue_workflow AS workflow, generate_series(1, 5000) AS number
"""


@pytest.mark.parametrize("name", KEPT)
def test_a_plan_for_all_parameters_that_was_made_over_empty_tables_reads_by_keys(name: str) -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"VACUUM (ANALYZE) {table}")
        # Statistics of rows that a flush has truncated since. Rows of a project are deleted, which
        # leaves the pages of their indexes.
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = ANY (%s::regclass[])", (TABLES,))
    assert_reads_by_keys(name)


def test_a_plan_that_was_made_over_truncated_tables_reads_by_keys() -> None:
    """Their statistics are of the rows that were truncated."""
    chain(noop.s(), noop.si()).enqueue()
    with connection.cursor() as cursor:
        cursor.execute(COPIES)
        cursor.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")
        cursor.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
    for name in KEPT:
        assert_reads_by_keys(name)


def assert_reads_by_keys(name: str) -> None:
    """The plan of a statement for all parameters, made now, has a key for each row."""
    names = list(dict.fromkeys(PARAMETER.findall(KEPT[name])))
    text = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", KEPT[name])
    types = ", ".join(TYPES.get(each, "unknown") for each in names)
    assert connection.ensure_connection() is None
    with connection.connection.cursor() as cursor:
        for setting, value in {**PLANNING, "plan_cache_mode": "force_generic_plan"}.items():
            cursor.execute(f"SET {setting} = '{value}'")
        try:
            cursor.execute(f"PREPARE kept ({types}) AS {text}")
            cursor.execute(f"EXPLAIN EXECUTE kept ({', '.join(['NULL'] * len(names))})")
            plan = [line for (line,) in cursor.fetchall()]
            leading = {
                index: cursor.execute(LEADING, (index,)).fetchone()[0]
                for index in re.findall(r" Scan using (\w+)", "\n".join(plan))
            }
        finally:
            cursor.execute("DISCARD ALL")
    scans = [
        (found[1], condition)
        for line, condition in zip(plan, [*plan[1:], ""], strict=True)
        if (found := re.search(r" Scan using (\w+)", line))
    ]
    assert scans
    assert not [line for line in plan if "Seq Scan" in line]
    for index, condition in scans:
        # In the order of its ids, a workflow is found between one id and the same.
        is_found = re.search(rf"Index Cond: \(+{leading[index]} (= |>= .?row)", condition)
        assert is_found or index == IDLE, (index, "\n".join(plan))
