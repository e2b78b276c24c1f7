"""The details of an event are never more than 2 KiB, whoever wrote the row that changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.workflows import serving as workflows
from taskqueue.migrations._event_sources import SOURCES
from taskqueue.models import Lease, Step, Task
from taskqueue.models.worker import LONGEST_NAME as LONGEST_WORKER_NAME
from taskqueue.workflows import chain
from tests.alerts.steps import look_now, make_rule
from tests.engine.steps import claim_one, end
from tests.events.steps import listen, written
from tests.monitoring.rows import make_worker
from tests.sample.tasks import fail, noop

pytestmark = pytest.mark.django_db(transaction=True)
LARGEST = 2048
# Of one to twelve bytes as JSON.
SIGNS = ["a", "\\", "\x01", "\N{GRINNING FACE}"]


def largest_text(sign: str, column: int) -> str:
    """As much as a column takes; those of SQLite take anything."""
    return sign * (column if connection.vendor == "postgresql" else 10_000)


def sizes() -> dict[str, int]:
    """The bytes of the largest details that are stored of each kind."""
    size = {
        "postgresql": "octet_length(details::text)",
        "sqlite": "length(CAST(details AS blob))",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT kind, max({size}) FROM taskqueue_event GROUP BY kind")
        return dict(cursor.fetchall())


@pytest.mark.parametrize("sign", SIGNS)
def test_no_text_of_a_task_or_a_workflow_makes_details_large(sign: str) -> None:
    error = {"error_class": largest_text(sign, 255)}
    chain(fail.s(), noop.si()).enqueue()
    task = Task.objects.get(name=fail.name)
    Step.objects.filter(id=task.step_id).update(name=largest_text(sign, 100))
    listen()
    same = Task.objects.create(name=fail.name, crash_delay=timedelta(0), step_id=task.step_id)
    same.delete()
    for kind, most in ((OutcomeKind.LOST, 2), (OutcomeKind.FAILED, 2), (OutcomeKind.FAILED, 1)):
        Task.objects.filter(id=task.id).update(status="ready", max_attempts=most)
        claimed = claim_one()
        Lease.objects.filter(id=claimed.lease_id).update(**error)
        end(claimed, kind, delay=0, **error)
    while workflows.serve(connection):
        pass
    found = sizes()
    assert {
        "task.enqueued", "task.lost", "task.retrying", "task.failed", "step.failed",
        "workflow.failed",
    } <= found.keys()  # fmt: skip
    assert max(found.values()) <= LARGEST, found
    assert {row.details["error"] for row in written() if "error" in row.details} == {sign * 200}


@pytest.mark.parametrize("sign", ["a", "\\", "\N{GRINNING FACE}"])
def test_no_subject_of_an_alert_makes_details_large(sign: str) -> None:
    listen("alert.*")
    make_worker(sign * LONGEST_WORKER_NAME, trouble="no disk")
    make_rule()
    look_now()
    assert sizes()["alert.raised"] <= LARGEST


def test_details_are_short_words_and_numbers_but_for_two_texts() -> None:
    """A new text in the details of an event belongs into the tests above."""
    names = {name for source in SOURCES for name, _ in source.details}
    cut = {"error", "step"}
    words = {"status", "operation", "nominal_at"}
    numbers = {"seconds", "percent", "count", "failures", "done"}
    assert names == cut | words | numbers
    expressions = [
        expression for source in SOURCES for name, expression in source.details if name in cut
    ]
    assert all(each.startswith("substr(") for each in expressions)
    # Statements for many tasks tell the name of a step as its column, on PostgreSQL, bounds it.
    assert 6 * (Step._meta.get_field("name").max_length or LARGEST) < LARGEST - 200
