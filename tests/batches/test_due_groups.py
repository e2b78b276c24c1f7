"""The look for groups that are due reads by keys, whatever the statistics say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from taskqueue import Batch, task
from taskqueue.engine.batches.firing import DUE
from taskqueue.engine.statement import fetch
from taskqueue.models import Collected

pytestmark = pytest.mark.django_db(transaction=True)
# The nodes of a plan that reads by keys alone.
KINDS = {
    "Limit", "Recursive Union", "Nested Loop", "WorkTable Scan", "CTE Scan", "Index Scan",
    "Index Only Scan",
}  # fmt: skip


@task(batch=Batch(max_size=10_000, grace=50))
def patient(events: list[Any]) -> None: ...


@task(batch=Batch(max_size=20, grace=50))
def full(events: list[Any]) -> None: ...


@pytest.mark.sqlite_only
def test_the_look_for_due_groups_goes_by_the_index_on_sqlite() -> None:
    text = DUE.sqlite.replace("%(limit)s", "500").replace("%(now)s", "'2026-01-01'")
    text = text.replace("%(name)s", "''").replace("%(group)s", "''")
    plan = " ".join(row[3] for row in fetch(connection, f"EXPLAIN QUERY PLAN {text}"))
    assert "SCAN other" not in plan
    assert "USE TEMP B-TREE" not in plan


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE taskqueue_collected")


def plan_of_look() -> dict[str, Any]:
    """The plan of a look for due groups, with what it read."""
    explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + DUE.postgresql
    [(plan,)] = fetch(connection, explain, {"limit": 500, "name": "", "group": ""})
    node: dict[str, Any] = plan[0]["Plan"]
    return node


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for node in plan.get("Plans", []):
        yield from nodes_of(node)


@pytest.mark.postgresql_only
@pytest.mark.parametrize("statistics", ["of an empty table", "fresh", "of one group", "none"])
def test_the_look_for_due_groups_reads_few_rows(statistics: str) -> None:
    """Two probes a group, however many events it or others have, and whichever are the newest."""
    if statistics == "of an empty table":
        analyze()
    if statistics == "of one group":
        patient.collect_many(range(4000), group="b")
        analyze()
        patient.collect_many(range(10), group="a")
        patient.collect_many(range(10), group="c")
    else:
        patient.collect_many(range(10), group="a")
        patient.collect_many(range(4000), group="b")
        full.collect_many(range(3000), group="full")
    if statistics == "fresh":
        analyze()
    plan = plan_of_look()
    nodes = list(nodes_of(plan))
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100, plan
    assert not [node for node in nodes if node.get("Rows Removed by Filter")], plan
    scans = [node for node in nodes if "Index Name" in node]
    assert len(scans) == 5
    for node in scans:
        assert node["Index Name"] == "taskqueue_collected_group", plan
        assert re.match(r"\(+ROW\(\(*name", node["Index Cond"]), plan
    assert {node["Node Type"] for node in nodes} <= KINDS, plan


@pytest.mark.postgresql_only
def test_events_of_batches_that_were_fired_are_passed_over_once() -> None:
    """Their entries lie in the index until a vacuum; the first look that meets them marks them."""
    patient.collect_many(range(4000), group="a")
    patient.collect_many(range(10), group="b")
    analyze()
    Collected.objects.filter(group="a").delete()
    plan_of_look()
    again = plan_of_look()
    assert again["Shared Hit Blocks"] + again["Shared Read Blocks"] < 100, again
