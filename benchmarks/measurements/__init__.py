"""The measurements, one in each module: `measure(bench)` returns the lines of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.figures import Figure
from benchmarks.harness import Bench
from benchmarks.measurements import (
    async_drain,
    backlog,
    beside_workflows,
    dead_rows,
    drain,
    drain_sqlite,
    enqueue_many,
    enqueue_one,
    events,
    hops,
    limits,
    limits_beside,
    limits_exact,
    memory,
    pick_up,
    start,
    statements,
    workflows,
)

Measure = Callable[[Bench], Iterable[Figure]]

MEASUREMENTS: dict[str, Measure] = {
    "dead_rows": dead_rows.measure,
    "drain": drain.measure,
    "async_drain": async_drain.measure,
    "drain_sqlite": drain_sqlite.measure,
    "enqueue_one": enqueue_one.measure,
    "enqueue_many": enqueue_many.measure,
    "pick_up": pick_up.measure,
    "start": start.measure,
    "statements": statements.measure,
    "memory": memory.measure,
    "workflows": workflows.measure,
    "hops": hops.measure,
    "beside_workflows": beside_workflows.measure,
    "limits": limits.measure,
    "events": events.measure,
    "limits_beside": limits_beside.measure,
    "limits_exact": limits_exact.measure,
    "backlog": backlog.measure,
}
SIDE_BY_SIDE = (
    *("drain", "drain_sqlite", "enqueue_one", "enqueue_many", "pick_up", "start"),
    "beside_workflows",
)
"""Those that also measure the code of another commit, if one is given."""
