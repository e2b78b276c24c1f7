"""Lanes: the queue and tags that a partition requires, and which lanes have open ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from taskqueue.engine.statement import Fact, Moment

# When a partition next gets a token.
NEXT_TOKEN = Moment.of("""
    SELECT min(opens_at) FROM taskqueue_partition WHERE opens_at IS NOT NULL
""")
# Whether there is anything to look at: an open partition, or a note.
HAS_PARTITIONS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_partition WHERE state = 'open')
    OR EXISTS (SELECT 1 FROM taskqueue_limitnote)
""")
# The queues and lanes with open partitions, as parts of a `WITH`: a loose scan of the index. A row
# with an empty queue name says that there is a note, or a partition whose token has come.
_OPEN_LANES = """open_lane (queue_name, lane) AS (
            SELECT * FROM (
                SELECT queue_name, lane
                FROM taskqueue_partition
                WHERE state = 'open'
                ORDER BY queue_name, lane
                LIMIT 1
            ) AS first
            UNION ALL
            SELECT following.queue_name, following.lane
            FROM open_lane {following}
        ), open_lanes (queue_name, lane) AS (
            SELECT queue_name, lane FROM open_lane
            UNION ALL
            SELECT '', ''
            WHERE EXISTS (SELECT 1 FROM taskqueue_limitnote)
                OR EXISTS (SELECT 1 FROM taskqueue_partition WHERE opens_at <= {now})
        )"""
_NEXT = """
                SELECT {columns}
                FROM taskqueue_partition
                WHERE state = 'open'
                    AND (queue_name, lane) > (open_lane.queue_name, open_lane.lane)
                ORDER BY queue_name, lane
                LIMIT 1
"""
OPEN_LANES_POSTGRESQL = _OPEN_LANES.format(
    following=f"CROSS JOIN LATERAL ({_NEXT.format(columns='queue_name, lane')}) AS following",
    now="statement_timestamp()",
)
OPEN_LANES_SQLITE = _OPEN_LANES.format(
    following="JOIN taskqueue_partition AS following "
    f"ON following.id = ({_NEXT.format(columns='id')})",
    now="%(now)s",
)
NEWS = ("", "")


@dataclass(frozen=True)
class Lane:
    """The tags that a worker needs, and the limits that are counted for the worker or its host."""

    tags: frozenset[str]
    per: tuple[tuple[str, str], ...]

    def suits(self, tags: frozenset[str]) -> bool:
        """Return whether a worker with these tags may serve the lane."""
        return self.tags <= tags


@lru_cache(maxsize=1024)
def lane_from(text: str) -> Lane:
    """Return a lane from the text that `declarations.placement` has written."""
    data = json.loads(text) if text else {}
    per = tuple((name, per) for name, per in data.get("per", ()))
    return Lane(frozenset(data.get("tags", ())), per)


def served_lanes(
    open_lanes: Iterable[tuple[str, str]],
    *,
    tags: frozenset[str],
    serving: Callable[[list[str]], list[str]],
) -> set[tuple[str, str]]:
    """Return the open lanes that a worker serves, according to its queues and tags."""
    lanes = set(open_lanes) - {NEWS}
    queues = set(serving(sorted({queue_name for queue_name, _ in lanes})))
    return {
        (queue_name, text)
        for queue_name, text in lanes
        if queue_name in queues and lane_from(text).suits(tags)
    }
