"""Workflows that cannot be advanced are left alone, and others go on."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.workflows import serving
from taskqueue.engine.workflows.rounds import _note_trouble
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Step, StepEnd, Workflow
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.sample.tasks import add
from tests.workflows.test_reconciling import end_without_folding

pytestmark = pytest.mark.django_db(transaction=True)

# A row that takes no trouble, and back.
REFUSE = {
    "postgresql": (
        "ALTER TABLE taskqueue_workflow ADD CONSTRAINT no_trouble CHECK (trouble = '')",
        "ALTER TABLE taskqueue_workflow DROP CONSTRAINT no_trouble",
    ),
    "sqlite": (
        """
        CREATE TRIGGER no_trouble BEFORE UPDATE ON taskqueue_workflow WHEN NEW.trouble <> '' BEGIN
            SELECT RAISE(ABORT, 'no trouble');
        END
        """,
        "DROP TRIGGER no_trouble",
    ),
}


@pytest.fixture
def bad(monkeypatch: pytest.MonkeyPatch) -> Workflow:
    """A workflow whose advance fails, beside one that is fine; a task of each has ended."""
    ids = [(add.s(1, 2) | add.s(10)).enqueue().id for _ in range(2)]
    end_without_folding()
    advance = serving.Advance.run

    def run(self: Any, due: list[Step] | None = None) -> None:
        if ids[0] in self._workflows:
            raise ValueError("it is odd")
        advance(self, due)

    monkeypatch.setattr(serving.Advance, "run", run)
    return Workflow.objects.get(id=ids[0])


def serve_once() -> None:
    for _ in range(3):
        serve(connection)


def running_steps() -> int:
    return Step.objects.filter(name="add-2", status="running").count()


def test_a_workflow_that_cannot_be_advanced_says_why_and_others_go_on(bad: Workflow) -> None:
    serve_once()
    bad.refresh_from_db()
    assert bad.trouble == "it is odd"
    assert running_steps() == 1


def test_trouble_is_logged_when_it_begins_and_not_with_each_try(
    bad: Workflow, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        serve_once()
    assert caplog.text.count("Workflow not advanced") == 1
    Workflow.objects.update(trouble="something else")
    serve_once()
    assert caplog.text.count("Workflow not advanced") == 2


@pytest.mark.postgresql_only  # SQLite locks the whole file.
def test_trouble_is_not_noted_while_somebody_else_holds_the_workflow(bad: Workflow) -> None:
    with another_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM taskqueue_workflow WHERE id = %s FOR UPDATE", [bad.id])
        _note_trouble(connection, bad.id, ValueError("it is odd"))
        cursor.execute("ROLLBACK")
    bad.refresh_from_db()
    assert bad.trouble == ""


def test_trouble_that_the_row_refuses_stops_nobody(
    bad: Workflow, caplog: pytest.LogCaptureFixture
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(REFUSE[connection.vendor][0])
    try:
        serve_once()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(REFUSE[connection.vendor][1])
    assert running_steps() == 1
    assert "Trouble of a workflow not noted" in caplog.text


def test_many_notes_of_a_workflow_that_waits_for_a_newer_worker_keep_no_duty_busy() -> None:
    add.starmap((n, 1) for n in range(serving.MOST_LEFT)).enqueue()
    with transaction(connection):
        ends = [
            outcome(task, OutcomeKind.SUCCEEDED, return_value="1")._replace(updates='{"x": 1}')
            for task in claim(serving.MOST_LEFT)
        ]
        record(connection, ends, policy=policy())
    Workflow.objects.update(format=FORMAT + 1)
    serve(connection)
    assert not serve(connection)
    assert StepEnd.objects.count() == serving.MOST_LEFT
