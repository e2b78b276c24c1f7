"""Many rows, quickly: copies of a few."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Model

from taskqueue.models import Lease, Queue, Task
from tests.monitoring.rows import HOUR, ago, make_rollup, make_running, make_task, make_worker

SHARES = {"succeeded": 0.80, "failed": 0.10, "cancelled": 0.02, "ready": 0.05, "scheduled": 0.03}

# A key like that of the original, but for its last digits; the same moment, some time earlier.
KEY = {
    "postgresql": "(%s || lpad(to_hex(number.n), 8, '0'))::uuid",
    "sqlite": "%s || printf('%%08x', number.n)",
}
EARLIER = {
    "postgresql": "{column} - number.n * interval '1 second'",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', {column}, '-' || number.n || ' seconds')",
}


def fill(size: int) -> None:
    """So many tasks, most of them over, each with its lease; a little of all else."""
    make_worker()
    for name in ("default", "web"):
        Queue.objects.create(name=name)
    for status, share in SHARES.items():
        task = make_task(status, run_after=ago(HOUR), attempt=1)
        lease = make_running(task=task, status="succeeded", finished_at=ago(HOUR))
        copy(task, round(size * share), earlier=("run_after", "finished_at"))
        copy(lease, round(size * share), earlier=("finished_at",))
    for status in ("blocked", "retrying"):
        copy(make_task(status), 20)
    copy(make_task(route=1, workers=2), 20)
    for number in range(20):
        make_running(f"w{number}")
        make_rollup(ago(number * timedelta(hours=3)), succeeded=1, run=[1.0], wait=[0.1])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def copy(row: Model, times: int, *, earlier: tuple[str, ...] = ()) -> None:
    """Copies of a row that differ by their key, and by a second each in some moments."""
    shown: dict[str, Any] = {}
    for field in row._meta.concrete_fields:
        column = connection.ops.quote_name(field.column)
        shown[column] = f"original.{column}"
        if field.name in earlier:
            shown[column] = EARLIER[connection.vendor].format(column=f"original.{column}")
    parameters: list[Any] = []
    if isinstance(row, Task):
        shown['"id"'] = KEY[connection.vendor]
        parameters = [_prefix(row)]
    else:
        del shown['"id"']
    if isinstance(row, Lease):  # The copy of a task has the copy of its lease.
        shown['"task_id"'] = KEY[connection.vendor]
        parameters = [_prefix(row.task)]
    key = row.pk if connection.vendor == "postgresql" or not isinstance(row, Task) else row.pk.hex
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH RECURSIVE number (n) AS (
                SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < %s
            )
            INSERT INTO {row._meta.db_table} ({", ".join(shown)})
            SELECT {", ".join(shown.values())}
            FROM {row._meta.db_table} AS original CROSS JOIN number
            WHERE original.id = %s
            """,
            [times, *parameters, key],
        )


def _prefix(task: Task) -> str:
    return task.pk.hex[:12] + task.pk.hex[16:28]
