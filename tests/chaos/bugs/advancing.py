"""Bugs in advancing workflows: counting ends, releasing steps, and notifying of ends."""

from __future__ import annotations

import time
from typing import Any

from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"
WORKFLOWS = f"{ENGINE}.workflows"


def fold_without_delete(planting: Planting) -> None:
    """A note is counted again by each fold."""
    if planting.vendor == "postgresql":
        path = f"{ENGINE}.postgresql.workflows:FOLD"
        planting.rewrite(path, "DELETE FROM taskqueue_stepend AS note\n    USING locked", "SELECT")
        planting.rewrite(path, "SELECT\n    WHERE note.workflow_id", _COUNTED_AGAIN)
        planting.rewrite(path, "    RETURNING note.step_id, note.status, note.number\n", "")
    else:
        path = f"{ENGINE}.sqlite.workflows:TAKE_NOTES"
        planting.rewrite(path, "DELETE FROM", "SELECT step_id, status, number FROM")
        planting.rewrite(path, "RETURNING step_id, status, number", "")


_COUNTED_AGAIN = (
    "SELECT note.step_id, note.status, note.number FROM taskqueue_stepend AS note, locked\n"
    "    WHERE note.workflow_id"
)


def notes_after_commit(planting: Planting) -> None:
    """Ends are noted in a transaction of their own, with the ends that come next."""
    kept: list[Any] = []

    def note_ends(connection: Any, ended: Any) -> None:
        late = [*kept]
        kept[:] = [task for task in ended if task.step_id is not None] or kept
        before(connection, [task for task in late if task not in kept])

    before = planting.replace(f"{ENGINE}.step_ends:note_ends", note_ends)
    planting.replace(f"{ENGINE}.ends:note_ends", note_ends)


def _note_all_but(planting: Planting, path: str) -> None:
    """Let what that function ends be noted nowhere."""
    from taskqueue.engine import ends

    noted = ends.note_ends
    is_silent = [False]

    def note_ends(connection: Any, ended: Any) -> None:
        if not is_silent[0]:
            noted(connection, ended)

    def silent(*arguments: Any, **named: Any) -> Any:
        is_silent[0] = True
        try:
            return before(*arguments, **named)
        finally:
            is_silent[0] = False

    planting.replace(f"{ENGINE}.ends:note_ends", note_ends)
    before = planting.replace(path, silent)


def overdue_not_noted(planting: Planting) -> None:
    """What ends by its deadline, or expires, is not noted."""
    _note_all_but(planting, f"{ENGINE}.ends:end_overdue")


def cancel_not_noted(planting: Planting) -> None:
    """What a stop of its workflow cancels is not noted."""
    _note_all_but(planting, f"{WORKFLOWS}.advancing:stop_some")


def next_worker_waited_for(planting: Planting) -> None:
    """A stop leaves a task open that waits for its next worker."""
    words = "task.open_slots > 0 AND (task.workers > 1 OR task.broadcast)"
    planting.rewrite(f"{WORKFLOWS}.stopping:TO_STOP", words, "task.id IS NULL")


def takeover_not_noted(planting: Planting) -> None:
    """What is lost for good is not noted."""
    from taskqueue.engine import ends

    noted = ends.note_ends

    def note_ends(connection: Any, ended: Any) -> None:
        noted(connection, [task for task in ended if task.status != "failed"])

    planting.replace(f"{ENGINE}.ends:note_ends", note_ends)


def workflow_not_locked(planting: Planting) -> None:
    """Several workers advance a workflow at the same time."""
    from taskqueue.engine.dialect import dialect_for
    from taskqueue.engine.workflows.locking import Locked, lock_due_steps
    from taskqueue.models import Workflow

    def lock_workflows(connection: Any, ids: Any) -> Any:
        rows = Workflow.objects.using(connection.alias).filter(id__in=ids, finished_at=None)
        found = list(rows.order_by("id"))
        time.sleep(0.05)
        now = dialect_for(connection).now(connection)
        due = lock_due_steps(connection, [workflow.id for workflow in found])
        return Locked(found, due, now) if found else None

    planting.replace(f"{WORKFLOWS}.pending:lock_workflows", lock_workflows)
    planting.replace(f"{WORKFLOWS}.rounds:lock_workflows", lock_workflows)


def no_second_look(planting: Planting) -> None:
    """Who is refused a workflow is forgotten by who holds it, and no duty looks."""

    def advance(connection: Any, workflow_ids: Any) -> Any:
        time.sleep(0.02)
        return before(connection, workflow_ids)

    planting.replace(f"{WORKFLOWS}.rounds:left_of", lambda *arguments: set())
    planting.replace(f"{WORKFLOWS}.serving:serve", lambda connection: False)
    before = planting.replace(f"{WORKFLOWS}.rounds:advance", advance)


def released_too_early(planting: Planting) -> None:
    """A step is released while one that it depends on has not ended."""
    from taskqueue.engine.workflows import dependants
    from taskqueue.models import Step

    def select(connection: Any, statement: Any, **parameters: Any) -> Any:
        rows = before(connection, statement, **parameters)
        if statement is not dependants.PASS_ON:
            return rows
        return [(*row[:waits], max(0, row[waits] - 1), *row[waits + 1 :]) for row in rows]

    waits = [field.name for field in Step._meta.concrete_fields].index("waits")
    before = planting.replace(f"{WORKFLOWS}.dependants:select", select)


def skipped_counts_as_success(planting: Planting) -> None:
    """What follows a step that was skipped runs."""
    planting.rewrite(
        f"{WORKFLOWS}.dependants:PASS_ON",
        "THEN upstream.status = 'succeeded'",
        "THEN upstream.status IN ('succeeded', 'skipped')",
    )


def places_sent_twice(planting: Planting) -> None:
    """The members of a map are inserted again."""

    def send_members(connection: Any, step: Any, number: int, **named: Any) -> int:
        if number > 1:
            before(connection, step, 1, **named)
        return int(before(connection, step, number, **named))

    before = planting.replace(f"{WORKFLOWS}.releasing:send_members", send_members)


def calls_staged_by_task(planting: Planting) -> None:
    """Of the calls that attempts have written, the first are taken, whoever wrote them."""
    from taskqueue.engine.workflows import fan_outs
    from taskqueue.models import Lease, StepCalls

    def leases(self: Any, task_ids: Any) -> Any:
        written = StepCalls.objects.using(self._alias).filter(first_place=fan_outs.HEADER)
        rows = Lease.objects.using(self._alias).filter(task_id__in=task_ids)
        found = rows.filter(id__in=written.values("lease_id")).order_by("-attempt")
        return dict(found.values_list("task_id", "id"))

    planting.replace(f"{WORKFLOWS}.fan_steps:FanSteps._leases", leases)
    planting.replace(f"{WORKFLOWS}.fan_outs:_drop_earlier", lambda *arguments: None)


def context_written_at_once(planting: Planting) -> None:
    """A body's update is written while it runs."""
    from taskqueue.models import Workflow

    def update(self: Any, **values: Any) -> None:
        rows = Workflow.objects.filter(id=self.id)
        row = rows.get()
        rows.update(context={**row.context, **values})

    planting.replace("taskqueue.worker.bodies.workflow_context:WorkflowContext.update", update)


def fan_outs_only_counted(planting: Planting) -> None:
    """The end of a member counts, whatever it returned, and its updates are dropped."""
    if planting.vendor == "postgresql":
        path, words = (
            f"{ENGINE}.postgresql.workflows:FOLD",
            ("AND NOT (locked.is_running AND (note.updates IS NOT NULL OR note.has_fan))"),
        )
        planting.rewrite(path, words, "")
    else:
        path = f"{ENGINE}.sqlite.workflows:TAKE_NOTES"
        planting.rewrite(path, "(updates IS NOT NULL OR has_fan)", "0")
