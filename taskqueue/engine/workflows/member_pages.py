"""Store results of members as JSON lists, many per row, which is far faster than single rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import select
from taskqueue.engine.statement import Statement

LAST_PLACE = 2**31 - 1

_MEMBERS = """
SELECT step_id, place, task_id
FROM taskqueue_member
WHERE {steps}
    AND place >= %(start)s AND place < %(stop)s
    AND (step_id, place) > (%(last_step)s, %(last_place)s)
ORDER BY step_id, place
LIMIT %(number)s
"""
# The next members, one row for each step: their places and results as JSON lists, the bytes of the
# results, and whether a succeeded task has no result. Results beyond `largest` bytes are left out.
# A task that did not succeed, or was deleted, has null.
_READ = Statement(
    postgresql="""
        SELECT
            step_id, '[' || string_agg(place::text, ',') || ']',
            '[' || string_agg(CASE WHEN until <= %(largest)s THEN text ELSE 'null' END, ',') || ']',
            sum(size)::bigint, bool_or(is_none)
        FROM (
            SELECT
                member.step_id, member.place, COALESCE(task.is_none, false) AS is_none,
                COALESCE(task.text, 'null') AS text,
                COALESCE(octet_length(task.text), 0) AS size,
                sum(octet_length(task.text)) OVER (ORDER BY member.step_id, member.place) AS until
            FROM ({members}) AS member
            LEFT JOIN LATERAL (
                SELECT
                    CASE WHEN status = 'succeeded' THEN return_value::text END AS text,
                    status = 'succeeded' AND return_value IS NULL AS is_none
                FROM taskqueue_task
                WHERE id = member.task_id
                OFFSET 0
            ) AS task ON true
        ) AS member
        GROUP BY step_id
        ORDER BY step_id
    """,
    sqlite="""
        SELECT
            step_id, '[' || group_concat(place, ',') || ']',
            '[' || group_concat(CASE WHEN until <= %(largest)s THEN text ELSE 'null' END) || ']',
            sum(size), max(is_none)
        FROM (
            SELECT
                step_id, place, is_none, text, size,
                sum(size) OVER (ORDER BY step_id, place) AS until
            FROM (
                SELECT
                    member.step_id, member.place,
                    COALESCE(task.status = 'succeeded' AND task.return_value IS NULL, 0) AS is_none,
                    COALESCE(
                        CASE WHEN task.status = 'succeeded' THEN task.return_value END, 'null'
                    ) AS text,
                    COALESCE(
                        CASE WHEN task.status = 'succeeded'
                        THEN length(CAST(task.return_value AS BLOB)) END,
                        0
                    ) AS size
                FROM ({members}) AS member
                LEFT JOIN taskqueue_task AS task ON task.id = member.task_id
            )
        )
        GROUP BY step_id
        ORDER BY step_id
    """,
)  # fmt: skip


def _read_of(steps: Statement) -> Statement:
    return Statement(
        postgresql=_READ.postgresql.format(members=_MEMBERS.format(steps=steps.postgresql)),
        sqlite=_READ.sqlite.format(members=_MEMBERS.format(steps=steps.sqlite)),
    )


READ_MANY = _read_of(Statement.of("step_id {in steps bigint}"))
# In the order of the index: PostgreSQL before 17 would sort rows that it finds by a list.
READ_ONE = _read_of(Statement.of("step_id = %(step)s"))


class MemberPage(NamedTuple):
    """Some members of a step, with their results."""

    step_id: int
    places: list[int]
    # A JSON list of the results.
    texts: str
    # Bytes of the results.
    size: int
    # Whether a member has succeeded without a result.
    has_none: bool

    def results(self) -> Iterator[tuple[int, Any]]:
        """Return the places with their results; None for members that did not succeed."""
        return zip(self.places, json.loads(self.texts), strict=True)


def pages_of(
    connection: BaseDatabaseWrapper,
    step_ids: Sequence[int],
    *,
    start: int,
    stop: int | None,
    number: int,
    largest: int,
) -> Iterator[MemberPage]:
    """Yield pages of the members of steps from place `start` to `stop`, `number` members at a time.

    Once the results of one read exceed `largest` bytes, the remaining ones are None; the sizes show
    where that happened.
    """
    last_step, last_place, read = 0, -1, number
    is_one = len(step_ids) == 1
    wanted: dict[str, Any] = {"step": step_ids[0]} if is_one else {"steps": list(step_ids)}
    while read == number:
        rows = select(
            connection,
            READ_ONE if is_one else READ_MANY,
            **wanted,
            start=start,
            stop=LAST_PLACE if stop is None else stop,
            last_step=last_step,
            last_place=last_place,
            number=number,
            largest=largest,
        )
        read = 0
        for step_id, places, *rest in rows:
            page = MemberPage(step_id, json.loads(places), *rest)
            read += len(page.places)
            last_step, last_place = step_id, max(page.places)
            yield page
