"""Fold and advance until nothing is left to do, or other sessions are doing it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from uuid import UUID

from django.db import DataError, Error, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.engine.connections import orm_transaction, transaction
from taskqueue.engine.dialect import as_uuid, dialect_for, select
from taskqueue.engine.rows import Folded
from taskqueue.engine.sessions import (
    KEEPS_PLAN,
    commit_lazily,
    is_sqlite,
    kept_plan,
    owns_session,
)
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.advancing import (
    MOST_FOLDED,
    MOST_WORKFLOWS,
    Advance,
)
from taskqueue.engine.workflows.locking import lock_others, lock_workflows
from taskqueue.models import Workflow

logger = logging.getLogger("taskqueue.engine")

# The work left for these workflows: steps with noted ends, or null if a step is due.
LEFT_OF = Statement(
    postgresql=f"""
        WITH clock AS MATERIALIZED (
            SELECT 1 WHERE {KEEPS_PLAN}
        )
        SELECT workflow_id, step_id
        FROM clock
        CROSS JOIN taskqueue_stepend
        WHERE workflow_id = ANY (%(workflows)s::uuid[])
        UNION
        SELECT workflow_id, NULL
        FROM clock
        CROSS JOIN taskqueue_step
        WHERE is_due AND workflow_id = ANY (%(workflows)s::uuid[])
    """,  # noqa: S608  (of constants)
    sqlite="""
        SELECT workflow_id, step_id
        FROM taskqueue_stepend
        WHERE workflow_id IN (SELECT value FROM json_each(%(workflows)s))
        UNION
        SELECT workflow_id, NULL
        FROM taskqueue_step
        WHERE is_due AND workflow_id IN (SELECT value FROM json_each(%(workflows)s))
    """,
)
# The most rounds of one call, and the most of them that stop one workflow; the duty does the rest.
# Stopping a wide map takes very many rounds, and meanwhile the worker claims nothing.
MOST_ROUNDS, MOST_STOPS = 1000, 4


def fold(connection: BaseDatabaseWrapper, step_ids: Collection[int]) -> list[Folded]:
    """Count the noted ends of these steps. Return the steps that others have not locked."""
    is_one = len(step_ids) <= MOST_FOLDED
    with _short_transaction(connection) if is_one else transaction(connection):
        return _fold(connection, step_ids)


def _fold(connection: BaseDatabaseWrapper, step_ids: Collection[int]) -> list[Folded]:
    """Fold in the caller's transaction, by as many statements as it takes."""
    ids, fold_some = sorted(step_ids), dialect_for(connection).fold
    starts = range(0, len(ids), MOST_FOLDED)
    return [step for at in starts for step in fold_some(connection, ids[at : at + MOST_FOLDED])]


@dataclass
class Advanced:
    """The result of folding steps and advancing their workflows."""

    # The steps after the fold, without those that other sessions have locked.
    folded: list[Folded]
    # The queues of tasks that became ready. None stands for tasks that may be in any queue.
    queues: set[str | None] = field(default_factory=set)


def fold_and_advance(connection: BaseDatabaseWrapper, step_ids: Collection[int]) -> Advanced:
    """Fold these steps, and do everything that follows from it.

    Steps are folded in the transaction that advances their workflows, unless another session has
    locked these workflows.
    """
    ids = sorted(step_ids)
    advanced = Advanced([])
    for first in range(0, len(ids), MOST_WORKFLOWS):
        some = _fold_and_advance_some(connection, ids[first : first + MOST_WORKFLOWS])
        advanced.folded += some.folded
        advanced.queues |= some.queues
    return advanced


def _fold_and_advance_some(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> Advanced:
    try:
        return _fold_and_advance_at_once(connection, step_ids)
    except Exception as error:
        if _is_of_session(error):
            raise
        # One workflow causes the error; the code below finds out which. Nothing was folded.
    folded = fold(connection, step_ids)
    due = {step.workflow_id for step in folded if step.is_due}
    advance(connection, due)
    return Advanced(folded, {None} if due else set())


def _fold_and_advance_at_once(
    connection: BaseDatabaseWrapper, step_ids: Collection[int]
) -> Advanced:
    """Fold and advance in one transaction; in two if a workflow cannot be locked.

    A session that has locked steps may wait only if it also holds the locks of all of their
    workflows. So if a workflow is locked elsewhere, the first transaction ends with the fold, and
    the advance is tried once more: the session that holds the workflow may have looked for work
    left in it before that COMMIT.
    """
    step: Advance | None = None
    is_lazy = not connection.in_atomic_block
    with orm_transaction(connection):
        folded = _fold(connection, step_ids)
        due = {as_uuid(each.workflow_id) for each in folded if each.is_due}
        others = {as_uuid(each.workflow_id) for each in folded} - due if due else set()
        if due and lock_others(connection, others):
            locked = lock_workflows(connection, due)
            if locked is not None and len(locked.workflows) == len(due):
                step = Advance(connection, locked.workflows, now=locked.now, is_lazy=is_lazy)
                step.run(locked.due)
        if step is None and is_lazy:
            # Its notes are on disk: after a crash of the server they are counted again.
            commit_lazily(connection)
    if step is None:
        # Other sessions may have failed to lock the workflows that were locked here and are not
        # due.
        due |= left_of(connection, others, ())
        advance(connection, due)
        return Advanced(folded, {None} if due else set())
    queues = step.queues
    if advance(connection, left_of(connection, due | others, step.told)):
        queues.add(None)
    return Advanced(folded, queues)


def advance(connection: BaseDatabaseWrapper, workflow_ids: Iterable[UUID | str]) -> bool:
    """Advance workflows until nothing is left to do, or others do it.

    Return whether any was advanced. After each COMMIT it looks again, because a session that
    completed a step meanwhile could not get the workflow's lock.
    """
    pending = {as_uuid(id) for id in workflow_ids}
    stops: Counter[UUID] = Counter()
    has_advanced = False
    for _ in range(MOST_ROUNDS):
        if not pending:
            break
        chunk = sorted(pending)[:MOST_WORKFLOWS]
        pending.difference_update(chunk)
        advanced, told = _advance_chunk(connection, chunk)
        has_advanced = has_advanced or bool(advanced)
        stops.update(id for id, status in advanced.items() if status == WorkflowStatus.STOPPING)
        pending |= left_of(connection, advanced, told)
        pending -= {id for id, number in stops.items() if number >= MOST_STOPS}
    return has_advanced


def look_again(connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID]) -> bool:
    """Do the work left in workflows that this session has locked.

    Return whether any was advanced.
    """
    return advance(connection, left_of(connection, workflow_ids, ()))


def _advance_chunk(
    connection: BaseDatabaseWrapper, ids: list[UUID]
) -> tuple[dict[UUID, str], set[int]]:
    """Advance some workflows in one transaction.

    Return the statuses of those that could be locked, and the steps of parents whose children
    ended.

    A workflow that cannot be advanced is left as it was, and its row says why.
    """
    is_lazy = not connection.in_atomic_block  # The caller decides about its own transaction.
    try:
        with orm_transaction(connection):
            locked = lock_workflows(connection, ids)
            if locked is None:
                return {}, set()
            step = Advance(connection, locked.workflows, now=locked.now, is_lazy=is_lazy)
            step.run(locked.due)
        return {workflow.id: workflow.status for workflow in locked.workflows}, step.told
    except Exception as error:
        if _is_of_session(error):
            raise
        if len(ids) == 1:
            if _note_trouble(connection, ids[0], error):
                logger.exception("Workflow not advanced workflow=%s", ids[0])
            return {}, set()
    done = [_advance_chunk(connection, [id]) for id in ids]
    statuses = {id: status for advanced, _ in done for id, status in advanced.items()}
    return statuses, set().union(*(told for _, told in done))


def _is_of_session(error: Exception) -> bool:
    """Return whether an error is not about one workflow.

    Data that the database refuses would be.
    """
    return isinstance(error, Error) and not isinstance(error, (DataError, IntegrityError))


def _note_trouble(connection: BaseDatabaseWrapper, id: UUID, error: Exception) -> bool:
    """Write into a workflow's row why it cannot be advanced.

    Return whether the row did not say so yet. Nothing is written if another session has locked the
    row, or the database refuses the text.
    """
    trouble = one_line(error)
    try:
        with orm_transaction(connection):
            rows = Workflow.objects.using(connection.alias).filter(id=id)
            known = rows.select_for_update(skip_locked=True).values_list("trouble", flat=True)
            before = known.first()
            if before is not None and before != trouble:
                rows.update(trouble=trouble)
            return before != trouble
    except (DataError, IntegrityError):
        logger.exception("Trouble of a workflow not noted workflow=%s", id)
        return True


def left_of(
    connection: BaseDatabaseWrapper, ids: Collection[UUID], told: Collection[int]
) -> set[UUID]:
    """Fold ends that were noted meanwhile. Return the workflows that must be advanced again."""
    if not ids:
        return set()
    # Both databases read this form as a UUID.
    with kept_plan(connection) as series:
        rows = select(connection, LEFT_OF, workflows=[id.hex for id in ids], series=series)
    left = {as_uuid(workflow_id) for workflow_id, step_id in rows if step_id is None}
    steps = {step_id for _, step_id in rows if step_id is not None} | set(told)
    if steps:
        left |= {as_uuid(step.workflow_id) for step in fold(connection, steps) if step.is_due}
    return left


def _short_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return a transaction for one statement, which needs none on the worker's own session."""
    if is_sqlite(connection) or not owns_session(connection):
        return transaction(connection)
    return nullcontext()
