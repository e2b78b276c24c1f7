"""Tasks in every status, their attempts and log lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from taskqueue.models import Lease, Task, TaskLog
from tests.browser.lively.kinds import BY_NAME, KINDS, Kind
from tests.browser.lively.moments import ago, id_at, spread

DAY = 86_400
TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/{path}.py", line 118, in {function}
    answer = session.call(request, timeout=10)
  File "/srv/shop/shop/net.py", line 64, in call
    return self._send(prepared)
{error}
"""


@dataclass
class Rows:
    """What is inserted together."""

    tasks: list[Task]
    leases: list[Lease]
    lines: list[TaskLog]

    def insert(self) -> None:
        """Into the database."""
        Task.objects.bulk_create(self.tasks, batch_size=500)
        Lease.objects.bulk_create(self.leases, batch_size=500)
        TaskLog.objects.bulk_create(self.lines, batch_size=500)


class Maker:
    """Makes rows that fit together, the same ones every time."""

    def __init__(self, now: datetime, random: Random, workers: Sequence[str]) -> None:
        self.now = now
        self.random = random
        self.workers = workers
        self.rows = Rows([], [], [])

    def task(self, kind: Kind, enqueued_at: datetime, status: str, **columns: Any) -> Task:
        """A task, not stored yet."""
        values: dict[str, Any] = {
            "id": id_at(enqueued_at, self.random), "name": kind.name,
            "queue_name": kind.queue_name, "status": status, "priority": kind.priority,
            "kwargs": kind.arguments(self.random), "max_attempts": kind.max_attempts,
            "crash_delay": timedelta(seconds=10), "enqueued_at": enqueued_at,
            "run_after": enqueued_at, "ready_at": enqueued_at,
        }  # fmt: skip
        made = Task(**(values | columns))
        self.rows.tasks.append(made)
        return made

    def lease(self, task: Task, status: str, started_at: datetime, **columns: Any) -> Lease:
        """The next attempt of a task."""
        task.attempt += 1
        values: dict[str, Any] = {
            "task": task, "worker_id": self.random.choice(self.workers), "attempt": task.attempt,
            "status": status, "claimed_at": started_at, "started_at": started_at,
            "expires_at": self.now + timedelta(seconds=30),
        }  # fmt: skip
        made = Lease(**(values | columns))
        task.started_at = task.started_at or started_at
        self.rows.leases.append(made)
        return made

    def line(self, task: Task, at: datetime, message: str, level: int = 20) -> None:
        """What its attempt said."""
        self.rows.lines.append(
            TaskLog(task=task, attempt=task.attempt, logged_at=at, level=level,
                    logger=task.name.rpartition(".")[0], message=message)
        )  # fmt: skip

    def ended(self, kind: Kind, finished_at: datetime) -> Task:
        """A task that came to its end then."""
        fails = self.random.random() < kind.failure_rate
        run = min(spread(self.random, kind.seconds), DAY / 4)
        started_at = finished_at - timedelta(seconds=run)
        task = self.task(
            kind, started_at - timedelta(seconds=spread(self.random, 0.3)),
            "failed" if fails else "succeeded", finished_at=finished_at,
        )  # fmt: skip
        if fails:
            self.fail(task, kind, started_at, finished_at)
        else:
            task.return_value = {"took": round(run, 2)}
            self.lease(task, "succeeded", started_at, finished_at=finished_at)
        return task

    def fail(self, task: Task, kind: Kind, started_at: datetime, finished_at: datetime) -> None:
        """Attempts that failed, the last of them at that time."""
        error = {"error_class": kind.error_class, "error_message": kind.error}
        path, _, function = task.name.rpartition(".")
        said = TRACEBACK.format(
            path=path.replace(".", "/"),
            function=function,
            error=f"{kind.error_class}: {kind.error}",
        )
        began = started_at - timedelta(seconds=12 * (task.max_attempts - 1) + 1)
        task.enqueued_at = task.run_after = task.ready_at = began
        task.id = id_at(began, self.random)
        for number in range(task.max_attempts):
            later = timedelta(seconds=12 * (task.max_attempts - 1 - number))
            self.lease(task, "failed", started_at - later, finished_at=finished_at - later,
                       traceback=said, **error)  # fmt: skip
        task.failures = task.max_attempts
        task.error_class, task.error_message = kind.error_class, kind.error


def fill_history(maker: Maker, count: int) -> None:
    """What ended within two days, most of it lately."""
    kinds = maker.random.choices(KINDS[:-1], [kind.share for kind in KINDS[:-1]], k=count)
    for kind in kinds:
        seconds = 2 * DAY * maker.random.random() ** 3
        maker.ended(kind, ago(maker.now, seconds=seconds + 2))
    for kind in KINDS[3:6]:
        moment = ago(maker.now, minutes=maker.random.randint(10, 900))
        maker.task(kind, moment, "cancelled", finished_at=moment + timedelta(seconds=40))


def fill_waiting(maker: Maker) -> None:
    """What is ready, planned, or waits to be retried; some of it on queues nobody takes from."""
    waiting = {"shop.mail.send_receipt": 7, "shop.images.resize": 23, "shop.accounts.sync_crm": 4,
               "shop.imports.fetch_feed": 12, "shop.video.transcode": 3}  # fmt: skip
    for name, count in waiting.items():
        for number in range(count):
            age = 6 * number + 5 if name != "shop.video.transcode" else 2400 + 60 * number
            maker.task(BY_NAME[name], ago(maker.now, seconds=age), "ready")
    for hours in (1, 3, 7, 20, 26):
        planned = maker.now + timedelta(hours=hours, minutes=12)
        maker.task(BY_NAME["shop.mail.send_newsletter"], ago(maker.now, hours=2), "scheduled",
                   run_after=planned, ready_at=None)  # fmt: skip
    for seconds in (20, 95, 400):
        kind = BY_NAME["shop.imports.fetch_feed"]
        began = ago(maker.now, seconds=seconds + 60)
        task = maker.task(kind, began, "retrying", failures=1, ready_at=None,
                          error_class=kind.error_class, error_message=kind.error,
                          run_after=maker.now + timedelta(seconds=seconds))  # fmt: skip
        maker.lease(task, "failed", began, finished_at=ago(maker.now, seconds=40),
                    error_class=kind.error_class, error_message=kind.error)  # fmt: skip


def fill_running(maker: Maker) -> Task:
    """What runs now; the one that is returned has a past, says much, and is half done."""
    running = [("shop.search.reindex", 41, 72.0, "18,340 of 25,400 articles"),
               ("shop.mail.send_newsletter", 88, 34.0, "segment vip: 6,120 of 18,000"),
               ("shop.images.resize", 2, None, ""), ("shop.payments.capture", 1, None, ""),
               ("shop.imports.fetch_feed", 19, 8.0, "nordwind: page 3"),
               ("shop.accounts.sync_crm", 1, None, "")]  # fmt: skip
    for name, seconds, progress, message in running:
        task = maker.task(BY_NAME[name], ago(maker.now, seconds=seconds + 1), "running")
        worker = maker.random.choice(maker.workers[:3])
        maker.lease(task, "running", ago(maker.now, seconds=seconds), worker_id=worker,
                    progress=progress, progress_message=message)  # fmt: skip
    return _report(maker)


def _report(maker: Maker) -> Task:
    kind = BY_NAME["shop.reports.build_monthly"]
    now = maker.now
    report = maker.task(
        kind, ago(now, minutes=14), "running", failures=1, max_attempts=3,
        kwargs={"year": 2026, "month": 10, "formats": ["pdf", "xlsx"]}, unique_key="report-2026-10",
        metadata={"customer": "finance", "request": {"id": "8f1c", "from": "/reports/new"}},
        error_class=kind.error_class, error_message=kind.error,
    )  # fmt: skip
    began = ago(now, minutes=13, seconds=20)
    said = TRACEBACK.format(path="shop/reports", function="build_monthly",
                            error=f"{kind.error_class}: {kind.error}")  # fmt: skip
    maker.lease(report, "failed", began, finished_at=ago(now, minutes=8), traceback=said,
                error_class=kind.error_class, error_message=kind.error)  # fmt: skip
    maker.line(report, began, "building 2026-10 for finance")
    maker.line(report, ago(now, minutes=10), "the ledger takes its time: 61 s a page", 30)
    maker.line(report, ago(now, minutes=8), "gave up on page 4 of the ledger", 40)
    maker.lease(report, "running", ago(now, minutes=4), progress=62.0, worker_id=maker.workers[0],
                progress_message="writing report-2026-10.pdf, page 31 of 50")  # fmt: skip
    maker.line(report, ago(now, minutes=4), "building 2026-10 for finance, second try")
    maker.line(report, ago(now, minutes=2), "ledger read: 48,112 bookings in 94 s")
    maker.line(report, ago(now, seconds=30), "page 31 of 50")
    return report
