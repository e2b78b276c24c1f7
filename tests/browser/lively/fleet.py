"""Queues, workers, schedules, operations, and what people did."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from taskqueue import Cron, DailyWindow, Every, control, schedules
from taskqueue.control import TaskFilter
from taskqueue.models import Occurrence, Operation, Queue, Schedule, Task, Worker
from tests.browser.lively import shop
from tests.browser.lively.kinds import KINDS
from tests.browser.lively.moments import DEPLOYED, ago, id_at

WORKERS = ("web-1-4711-9f3a", "web-2-4398-c01d", "batch-1-812-77ab", "batch-2-903-0e5c")
MEGABYTE = 1024 * 1024
VERSIONS = {"project": "2026.11.2", "python": "3.13.5", "django": "6.1", "taskqueue": "0.1.0"}
FEED = {"supplier": "nordwind", "url": "https://feeds.example/v2/offers.xml"}


def fill_workers(now: datetime) -> None:
    """Active, quiet, draining, lost and stopped ones."""
    mail = {"mail": 2, "orders": 2, "payments": 2, "default": 1}
    batch = {"images": 1, "imports": 1, "reports": 1, "search": 1, "default": 1}
    rows: list[dict[str, Any]] = [
        {"name": WORKERS[0], "queues": mail | batch, "memory_bytes": 412 * MEGABYTE},
        {"name": WORKERS[1], "queues": mail, "started_at": now - DEPLOYED,
         "versions": VERSIONS | {"project": "2026.11.3"},
         "memory_bytes": 388 * MEGABYTE, "pool": "thread"},
        {"name": WORKERS[2], "queues": batch, "memory_bytes": 1210 * MEGABYTE},
        {"name": WORKERS[3], "queues": batch, "memory_bytes": 640 * MEGABYTE, "status": "stopping",
         "request": "stop", "requested_by": "ann", "request_reason": "the host is to be updated"},
        {"name": "canary-1-77-5d21", "queues": mail, "memory_bytes": 96 * MEGABYTE,
         "status": "quiet", "request": "quiet", "requested_by": "lee"},
        {"name": "batch-3-640-b2f0", "queues": batch, "status": "lost",
         "seen_at": ago(now, minutes=17)},
        {"name": "web-1-3377-12cc", "queues": mail, "status": "stopped",
         "seen_at": ago(now, hours=5), "stopped_at": ago(now, hours=5)},
    ]  # fmt: skip
    for number, row in enumerate(rows):
        Worker.objects.create(**{
            "host": row["name"].rsplit("-", 2)[0] + ".shop.example", "pid": 4000 + 97 * number,
            "concurrency": 4, "versions": VERSIONS,
            "lease_seconds": 600.0, "started_at": ago(now, hours=6 + number),
            "seen_at": ago(now, seconds=1 + number), **row,
        })  # fmt: skip


def fill_queues() -> None:
    """One for each of the shop's, one of them paused."""
    for name in sorted({kind.queue_name for kind in KINDS}):
        Queue.objects.get_or_create(name=name)
    control.pause("imports", by="ann", reason="nordwind sends broken feeds since 9:40")


def fill_schedules(now: datetime) -> None:
    """Of several kinds of rules; one is paused, one failed lately."""
    create = schedules.create
    create("newsletter", shop.send_newsletter, Cron("0 9 * * tue,thu", tz="Europe/Berlin"),
           kwargs={"issue": "2026-12", "segment": "weekly"}, by="ann")  # fmt: skip
    create("reindex the catalogue", shop.reindex, Every(minutes=30), kwargs={"catalogue": "main"})
    create("expire carts", shop.expire_carts, Cron("30 3 * * *", tz="Europe/Berlin"))
    create("stock by day", shop.reindex,
           DailyWindow("08:00", "19:30", every=timedelta(minutes=45), tz="Europe/Berlin"),
           kwargs={"catalogue": "outlet"})  # fmt: skip
    create("monthly report", shop.build_report, Cron("0 6 1 * *", tz="Europe/Berlin"),
           kwargs={"year": 2026, "month": 11}, by="lee")  # fmt: skip
    create("feeds", shop.fetch_feed, Every(hours=1), kwargs=FEED)
    schedules.pause("feeds", by="ann", reason="nordwind sends broken feeds since 9:40")
    reindexing = Schedule.objects.get(name="reindex the catalogue")
    found = Task.objects.filter(name="shop.search.reindex", finished_at__isnull=False)
    for number, task in reversed([*enumerate(found.order_by("-id")[:8])]):
        nominal = ago(now, minutes=30 * number + now.minute % 30).replace(second=0, microsecond=0)
        Occurrence.objects.create(
            schedule=reindexing, nominal_at=nominal, status="ended", task=task,
            task_status=task.status, enqueued_at=nominal, finished_at=task.finished_at,
            created_at=nominal,
        )  # fmt: skip
    Schedule.objects.filter(id=reindexing.id).update(
        last_status="succeeded", last_finished_at=ago(now, minutes=9), last_nominal_at=now,
    )  # fmt: skip


def fill_operations(now: datetime, random: Random) -> None:
    """One that is at work, one that is through, one that was called off."""
    which = {"which": TaskFilter(name="shop.imports.fetch_feed").to_json()}
    common: dict[str, Any] = {"chosen": which, "requested_by": "ann"}
    rows: list[dict[str, Any]] = [
        {"verb": "retry", "query": "name:shop.imports.fetch_feed status:failed", "expected": 1840,
         "matched": 1120, "done": 1120, "status": "running", "started_at": ago(now, seconds=21),
         "progressed_at": ago(now, seconds=1), "reason": "the feed is mended",
         "created_at": ago(now, seconds=22)},
        {"verb": "cancel", "query": "queue:video before:2026-11-20", "expected": 312,
         "matched": 312, "done": 309, "status": "finished", "started_at": ago(now, hours=3),
         "finished_at": ago(now, hours=2, minutes=59), "created_at": ago(now, hours=3)},
        {"verb": "reschedule", "query": "queue:mail", "expected": None, "matched": 15_000,
         "done": 14_988, "status": "cancelled", "started_at": ago(now, days=1),
         "finished_at": ago(now, hours=23), "created_at": ago(now, days=1)},
    ]  # fmt: skip
    for row in rows:
        Operation.objects.create(id=id_at(row["created_at"], random), **common, **row)
