"""The figures of workflows and partitions, and the sizes of tables, in one statement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps

from taskqueue.engine import totals
from taskqueue.engine.statement import Statement
from taskqueue.engine.totals import REST, label_among
from taskqueue.models.limit import CountOfLimits
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.reading import read

ENDS = ("succeeded", "failed", "cancelled")
# Statuses of unfinished workflows, with paused ones separate.
STATUSES = ("running", "paused", "stopping", "compensating")

# Each status by the index that begins with it: because of the order, the planner reads no other.
_OPEN = """
SELECT 'open', name, shown, count(*), 0.0 FROM (
    SELECT name, CASE WHEN paused_at IS NULL THEN status ELSE 'paused' END AS shown
    FROM taskqueue_workflow
    WHERE status >= '{status}' AND status <= '{status}'
    ORDER BY status, id LIMIT %(limit)s
) AS {status}
GROUP BY name, shown
"""
_FIGURES = f"""
{" UNION ALL ".join(_OPEN.format(status=status) for status in STATUSES if status != "paused")}
UNION ALL
SELECT CASE WHEN is_sum THEN 'sum' ELSE 'ended' END, name, what, CAST(sum(number) AS bigint),
    sum(seconds)
FROM taskqueue_workflowcount
GROUP BY is_sum, name, what
UNION ALL
SELECT CASE WHEN is_sum THEN 'sum_of_calls' ELSE 'calls' END, name, what,
    CAST(sum(number) AS bigint), 0.0
FROM taskqueue_callcount
GROUP BY is_sum, name, what
UNION ALL
SELECT 'notes', '', '', COALESCE(sum(number), 0), 0.0
FROM (SELECT number FROM taskqueue_stepend LIMIT %(limit)s) AS notes
UNION ALL
SELECT 'partition', state, '', count(*), 0.0
FROM (SELECT state FROM taskqueue_partition LIMIT %(limit)s) AS partitions
GROUP BY state
UNION ALL
SELECT 'limit_notes', '', '', count(*), 0.0
FROM (SELECT 1 FROM taskqueue_limitnote LIMIT %(limit)s) AS limit_notes
UNION ALL
SELECT 'endpoint', state, '', count(*), 0.0
FROM (
    SELECT CASE
        WHEN NOT is_enabled THEN 'disabled'
        WHEN failing_since IS NULL THEN 'active'
        ELSE 'failing'
    END AS state
    FROM taskqueue_endpoint
) AS endpoints
GROUP BY state
UNION ALL
SELECT 'deliveries', '', '', count(*), 0.0
FROM (SELECT 1 FROM taskqueue_delivery WHERE status = 'waiting' LIMIT %(limit)s) AS deliveries
UNION ALL
SELECT 'failed_deliveries', '', '', count(*), 0.0
FROM (SELECT 1 FROM taskqueue_delivery WHERE status = 'failed' LIMIT %(limit)s) AS failed
UNION ALL
SELECT 'new_events', '', '', count(*), COALESCE(max(seconds), 0.0)
FROM (
    SELECT CAST({{since at}} AS double precision) AS seconds
    FROM taskqueue_event
    WHERE seq IS NULL
    ORDER BY id
    LIMIT %(limit)s
) AS new_events
UNION ALL
SELECT 'new_batches', '', '', COALESCE(sum(number), 0), COALESCE(max(seconds), 0.0)
FROM (
    SELECT number, CAST({{since at}} AS double precision) AS seconds
    FROM taskqueue_eventbatch
    ORDER BY id
    LIMIT %(limit)s
) AS new_batches
UNION ALL
SELECT 'limit_count', name, what, 0, number FROM taskqueue_limitcount
UNION ALL
SELECT 'pause', CASE WHEN name = '' THEN 'everything' ELSE 'definition' END, '', count(*), 0.0
FROM taskqueue_pause
WHERE paused_until IS NULL OR paused_until > {{now}}
GROUP BY CASE WHEN name = '' THEN 'everything' ELSE 'definition' END
UNION ALL
"""  # noqa: S608  (of constants)
# SQLite cannot give pages by table without reading them all.
_SHARED = Statement.of(_FIGURES)
FIGURES = Statement(
    postgresql=_SHARED.postgresql  # noqa: S608  (of constants)
    + """
SELECT 'table', relname::text, '', pg_total_relation_size(oid), 0.0
FROM pg_class
WHERE oid = ANY (SELECT to_regclass(name) FROM unnest(%(tables)s::text[]) AS name)
""",
    sqlite=_SHARED.sqlite
    + """
SELECT 'table', 'database', '', pages.page_count * size.page_size, 0.0
FROM pragma_page_count AS pages CROSS JOIN pragma_page_size AS size
""",
)
# Counts by the name of the workflows and the status.
Key = tuple[str, str]


@dataclass
class WorkflowFigures:
    """Gauges and counters of workflows, and the sizes of tables."""

    # Unfinished workflows, and the statuses of which there may be more.
    open: Counter[Key] = field(default_factory=Counter)
    capped: dict[str, bool] = field(default_factory=dict)
    # How many have ended, and the sum of their durations in seconds.
    ended: Mapping[Key, tuple[int, float]] = field(default_factory=dict)
    # Partitions of limited tasks by state, and their notes, each counted up to a cap.
    partitions: Mapping[str, int] = field(default_factory=dict)
    limit_notes: int = 0
    # Endpoints of webhooks by state, and waiting deliveries, counted up to a cap.
    endpoints: Mapping[str, int] = field(default_factory=dict)
    deliveries: int = 0
    # Failed deliveries that are still kept, counted up to the same cap.
    failed_deliveries: int = 0
    # Events without a number, counted up to a cap, and the age of the oldest.
    new_events: int = 0
    event_lag: float = 0.0
    # How many partitions a sweep opened; and by limit, the seconds for which tasks waited for
    # places.
    limit_repairs: float = 0
    saturated: dict[str, float] = field(default_factory=dict)
    # How many definitions are paused, and whether everything is.
    pauses: dict[str, int] = field(default_factory=dict)
    # Calls that were turned away, by the definition's name and what happened to them.
    turned_away: Mapping[Key, tuple[int, float]] = field(default_factory=dict)
    repairs: int = 0
    notes: int = 0
    # The bytes of each table with its indexes; on SQLite those of the whole file.
    sizes: dict[str, int] = field(default_factory=dict)


def workflow_figures() -> WorkflowFigures:
    """Return the figures from one statement."""
    tables = [model._meta.db_table for model in apps.get_app_config("taskqueue").get_models()]
    rows = read(FIGURES, limit=CAP + 1, tables=sorted(set(tables)))
    kinds: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    for kind, *row in rows:
        kinds[kind].append(row)
    figures = WorkflowFigures(sizes={name: size for name, _, size, _ in kinds["table"]})
    figures.notes = min(CAP, sum(number for _, _, number, _ in kinds["notes"]))
    figures.partitions = {state: number for state, _, number, _ in kinds["partition"]}
    figures.limit_notes = min(CAP, sum(number for _, _, number, _ in kinds["limit_notes"]))
    figures.endpoints = {state: number for state, _, number, _ in kinds["endpoint"]}
    figures.deliveries = min(CAP, sum(number for _, _, number, _ in kinds["deliveries"]))
    failed = sum(number for _, _, number, _ in kinds["failed_deliveries"])
    figures.failed_deliveries = min(CAP, failed)
    new = [*kinds["new_events"], *kinds["new_batches"]]
    figures.new_events = min(CAP, sum(number for _, _, number, _ in new))
    figures.event_lag = max(0.0, *(seconds for *_, seconds in new))
    counts = {(what, name): number for name, what, _, number in kinds["limit_count"]}
    figures.limit_repairs = counts.pop((CountOfLimits.REPAIRED.value, ""), 0.0)
    figures.saturated = {name: number for (_, name), number in counts.items()}
    figures.pauses = {what: number for what, _, number, _ in kinds["pause"]}
    _add_open(figures, kinds["open"])
    figures.turned_away = _added_up(kinds["sum_of_calls"], kinds["calls"])
    ended = _added_up(kinds["sum"], kinds["ended"])
    figures.repairs = sum(number for (_, what), (number, _) in ended.items() if what not in ENDS)
    figures.ended = {key: counted for key, counted in ended.items() if key[1] in ENDS}
    return figures


def _add_open(figures: WorkflowFigures, rows: Sequence[Sequence[Any]]) -> None:
    """Give labels to the names with the most workflows; the rest share one."""
    numbers, statuses = Counter[str](), Counter[str]()
    for name, status, number, _ in rows:
        numbers[name] += number
        # Paused ones are counted among the running ones.
        statuses["running" if status == "paused" else status] += number
    chosen = sorted(numbers, key=lambda name: (-numbers[name], name))[: totals.MOST_LABELS]
    for name, status, number, _ in rows:
        figures.open[name if name in chosen else REST, status] += number
    for status in STATUSES:
        counted = statuses["running" if status == "paused" else status]
        figures.capped[status] = counted > CAP


def _added_up(*parts: Sequence[Sequence[Any]]) -> dict[Key, tuple[int, float]]:
    """Add up rows by the labels that the sums have, or will have once rows are merged."""
    found: dict[Key, tuple[int, float]] = {}
    for rows in parts:
        for name, what, number, seconds in sorted(rows, key=lambda row: (row[0], row[1])):
            label = label_among(name, {known for known, _ in found})
            before, total = found.get((label, what), (0, 0.0))
            found[label, what] = before + number, total + seconds
    return found
