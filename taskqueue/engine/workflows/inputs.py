"""Read the results of earlier steps for a body, by one statement if they are small.

Most steps read the result of one task, or those of a few members. `results` reads everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.declarations import snapshots
from taskqueue.declarations.workflows.reference_data import MARK, escaped, targets_in
from taskqueue.declarations.workflows.resolution import resolved_call
from taskqueue.engine.dialect import as_uuid, select
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows import members as members_of_steps
from taskqueue.exceptions import InvalidWorkflow

# A reference to the whole result of a step, as JSON text. No string can contain this text, because
# quotes within a string are escaped.
WHOLE_RESULT = re.compile(r'\{"\$step": ?"([^"\\]*)"\}')
# The most members of a step whose results are read with it, and the most bytes of each result.
FEW, ANY_SIZE = 200, 2**31 - 1
# The same bounds for a worker's parent, and the most steps that one statement reads.
FEWER, SMALL, MOST_STEPS = 16, 1024, 200

# The named steps in the workflows of these tasks, with their members in order. A step is plain if
# its result is exactly what its members returned. On PostgreSQL the server keeps the plan.
READ = Statement(
    postgresql=f"""
        SELECT
            wanted.task_id::text, own.workflow_id::text, step.name, step.kind, step.status,
            -- An EXISTS could be hashed: then all fan-outs that there are would be read.
            NOT jsonb_exists(step.request, 'resolved') AND (
                SELECT fan.id FROM taskqueue_step AS fan WHERE fan.parent_step_id = step.id LIMIT 1
            ) IS NULL,
            step.members, member.status, member.has_value, member.return_value
        FROM unnest(%(tasks)s::uuid[], %(names)s::text[]) AS wanted (task_id, name)
        CROSS JOIN (SELECT 1 WHERE {KEEPS_PLAN}) AS clock
        CROSS JOIN LATERAL (
            SELECT step_id FROM taskqueue_task WHERE id = wanted.task_id OFFSET 0
        ) AS task
        CROSS JOIN LATERAL (
            SELECT workflow_id FROM taskqueue_step WHERE id = task.step_id OFFSET 0
        ) AS own
        CROSS JOIN LATERAL (
            SELECT *
            FROM taskqueue_step
            WHERE workflow_id = own.workflow_id AND name = wanted.name
            OFFSET 0
        ) AS step
        LEFT JOIN LATERAL (
            SELECT
                member.place, read.status, read.return_value IS NOT NULL AS has_value,
                CASE
                    -- What is stored may be compressed, and is not made larger to be measured.
                    WHEN pg_column_size(read.return_value) > %(size)s THEN NULL
                    WHEN octet_length(read.return_value::text) <= %(size)s
                    THEN read.return_value::text
                END AS return_value
            FROM taskqueue_member AS member
            CROSS JOIN LATERAL (
                SELECT status, return_value
                FROM taskqueue_task
                WHERE id = member.task_id
                OFFSET 0
            ) AS read
            WHERE member.step_id = step.id AND member.place >= 0 AND step.members <= %(few)s
            OFFSET 0
        ) AS member ON true
        ORDER BY step.id, member.place
    """,  # noqa: S608  (of constants)
    sqlite="""
        SELECT
            wanted.value, own.workflow_id, step.name, step.kind, step.status,
            json_type(step.request, '$.resolved') IS NULL AND NOT EXISTS (
                SELECT 1 FROM taskqueue_step AS fan WHERE fan.parent_step_id = step.id
            ),
            step.members, read.status, read.return_value IS NOT NULL,
            CASE WHEN length(read.return_value) <= %(size)s THEN read.return_value END
        FROM json_each(%(tasks)s) AS wanted
        CROSS JOIN taskqueue_task AS task ON task.id = wanted.value
        CROSS JOIN taskqueue_step AS own ON own.id = task.step_id
        CROSS JOIN taskqueue_step AS step
            ON step.workflow_id = own.workflow_id
            AND step.name = json_extract(%(names)s, '$[' || wanted.key || ']')
        LEFT JOIN taskqueue_member AS member
            ON member.step_id = step.id AND member.place >= 0 AND step.members <= %(few)s
        LEFT JOIN taskqueue_task AS read ON read.id = member.task_id
        ORDER BY step.id, member.place
    """,
)


@dataclass
class _Result:
    """A step, and the JSON texts that its members returned."""

    kind: str
    status: str
    is_plain: bool
    members: int | None
    texts: list[str | None] = field(default_factory=list)
    # Whether a part of it was too large to be read.
    is_partial: bool = False

    @property
    def is_known(self) -> bool:
        """Whether these texts are all that the step's result consists of."""
        if self.status != StepStatus.SUCCEEDED:
            return True
        is_whole = self.is_plain and not self.is_partial and len(self.texts) == self.members
        is_kind = self.kind in (StepKind.MAP, StepKind.TASK)
        return is_whole and is_kind and _size(self.texts) <= members_of_steps.LARGEST_LIST

    @property
    def value(self) -> Any:
        """The result; None if the step did not succeed."""
        return json.loads(self.text)

    @property
    def text(self) -> str:
        """The result as JSON text."""
        if self.status != StepStatus.SUCCEEDED:
            return "null"
        texts = ["null" if text is None else text for text in self.texts]
        if self.kind == StepKind.MAP:
            return f"[{','.join(texts)}]"
        return texts[0] if texts else "null"


def read_inputs(
    connection: BaseDatabaseWrapper, task_id: str, names: Collection[str]
) -> tuple[UUID | None, dict[str, Any]]:
    """Return the workflow of a task, and by name those results of its steps that are small.

    The workflow is None if it has none of these steps.
    """
    workflow_ids, results = _read(connection, {task_id: names}, few=FEW, size=ANY_SIZE)
    known = results.get(task_id, {})
    return workflow_ids.get(task_id), {name: result.value for name, result in known.items()}


def with_inputs(connection: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> list[Claimed]:
    """Return claimed tasks with small results of steps in place of the references to them.

    So the bodies' processes need not ask the database. Large results and results that are not plain
    stay references, and so do all references of a task that reads more than `MOST_STEPS` steps.
    """
    wanted: dict[str, set[str]] = {}
    batches: list[dict[str, set[str]]] = []
    left = 0
    for row in claimed:
        names = _plain_names(row)
        if not names or len(names) > MOST_STEPS:
            continue
        if len(names) > left:
            batches.append({})
            left = MOST_STEPS
        batches[-1][row.task_id] = wanted[row.task_id] = names
        left -= len(names)
    if not wanted:
        return list(claimed)
    results: dict[str, dict[str, _Result]] = {}
    for batch in batches:
        results.update(_read(connection, batch, few=FEWER, size=SMALL)[1])
    return [
        _given(row, results.get(row.task_id, {}), wanted[row.task_id])
        if row.task_id in wanted
        else row
        for row in claimed
    ]


def _plain_names(row: Claimed) -> set[str]:
    """Return the steps whose results a task reads; an empty set if it reads anything else."""
    if not row.options or (MARK not in row.args and MARK not in row.kwargs):
        return set()
    # In other tasks the same text is data of the project.
    if snapshots.STEP not in snapshots.loaded(row.options):
        return set()
    names = [name for text in (row.args, row.kwargs) for name in WHOLE_RESULT.findall(text)]
    if len(names) == row.args.count(MARK) + row.kwargs.count(MARK):
        return set(names)
    try:
        targets = [*targets_in(row.args), *targets_in(row.kwargs)]
    except InvalidWorkflow:
        return set()  # The body's process fails the task with the reason.
    if any(len(each.steps) != 1 or each.part != "result" or each.is_lazy for each in targets):
        return set()
    return {each.steps[0] for each in targets}


def _given(row: Claimed, known: Mapping[str, _Result], names: Collection[str]) -> Claimed:
    if any(name not in known for name in names):
        return row
    texts = _spliced(row.args, known), _spliced(row.kwargs, known)
    if texts[0] is not None and texts[1] is not None:
        return row._replace(args=texts[0], kwargs=texts[1])
    values = {name: known[name].value for name in names}
    try:
        args, kwargs = resolved_call(row.args, row.kwargs, lambda target: values[target.steps[0]])
    except InvalidWorkflow:
        return row
    return row._replace(args=json.dumps(escaped(args)), kwargs=json.dumps(escaped(kwargs)))


def _spliced(text: str, known: Mapping[str, _Result]) -> str | None:
    """Return JSON text with results in place of references, for arguments of the most common form.

    Return None if a reference is to a part of a result, or if the text contains an escape.
    """
    names = WHOLE_RESULT.findall(text)
    if len(names) != text.count(MARK):
        return None
    results = {name: known[name].text for name in names}
    if any(MARK in result for result in results.values()):
        return None
    return WHOLE_RESULT.sub(lambda found: results[found[1]], text)


def _read(
    connection: BaseDatabaseWrapper,
    wanted: Mapping[str, Collection[str]],
    *,
    few: int,
    size: int,
) -> tuple[dict[str, UUID], dict[str, dict[str, _Result]]]:
    """Return the workflows of tasks, and the results of their steps by name, by task id."""
    pairs = [(task_id, name) for task_id, names in wanted.items() for name in sorted(names)]
    ids: list[Any] = [UUID(task_id) for task_id, _ in pairs]
    if is_sqlite(connection):
        ids = [id.hex for id in ids]
    names = [name for _, name in pairs]
    with kept_plan(connection) as series:
        rows = select(connection, READ, tasks=ids, names=names, few=few, size=size, series=series)
    workflow_ids: dict[str, UUID] = {}
    # Keyed by the ids as the database returns them.
    read: dict[tuple[str, str], _Result] = {}
    for task, workflow_id, name, kind, status, is_plain, members, end, has_value, text in rows:
        result = read.get((task, name))
        if result is None:
            result = read[task, name] = _Result(kind, status, bool(is_plain), members)
            workflow_ids[str(as_uuid(task))] = as_uuid(workflow_id)
        if end is not None:
            has_succeeded = end == TaskStatus.SUCCEEDED
            result.texts.append(text if has_succeeded else None)
            is_left_out = has_succeeded and text is None and bool(has_value)
            result.is_partial = result.is_partial or is_left_out
    results: dict[str, dict[str, _Result]] = {}
    for (task, name), result in read.items():
        if result.is_known:
            results.setdefault(str(as_uuid(task)), {})[name] = result
    return workflow_ids, results


def _size(texts: Sequence[str | None]) -> int:
    """Return the number of bytes of these texts."""
    return sum(len(text.encode()) for text in texts if text is not None)
