"""Workflows: one that has failed, one that runs, and a child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from taskqueue import task, workflow
from taskqueue.models import Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_due, run_next
from taskqueue.workflows import Builder

FILES, STORES = 40, 160


@task(name="shop.reports.load_day")
def load_day(day: str) -> dict[str, Any]:
    return {"files": [f"{day}/{number:03}.csv" for number in range(FILES)], "rows": 1200}


@task(name="shop.reports.clean")
def clean(path: str) -> int:
    if path.endswith("017.csv"):
        raise ValueError(f"{path}, line 118: 'n/a' is no price")
    return len(path)


@task(name="shop.reports.check")
def check(day: str) -> bool:
    return bool(day)


@task(name="shop.reports.summarise")
def summarise(sizes: list[int]) -> dict[str, int]:
    return {"rows": sum(sizes)}


@task(name="shop.reports.publish")
def publish(*given: object) -> str:
    return "published"


@task(name="shop.reports.page_owner")
def page_owner(error: object) -> None: ...


@task(name="shop.reports.drop_day")
def drop_day(*given: object) -> None: ...


@workflow(name="shop.archive")
def archive(wf: Builder, day: str) -> None:
    checked = wf.step(check.s(day))
    wf.step(publish.s(checked), name="store")


@workflow(name="shop.nightly")
def nightly(wf: Builder, day: str) -> None:
    """Reports of one day."""
    load = wf.step(load_day.s(day), name="load")
    checked = wf.step(check.s(day), name="check")
    parts = wf.step(clean.map(load["files"]), name="clean", concurrency=10)
    stats = wf.step(summarise.s(parts), name="summarise")
    wf.step(page_owner.s(parts.error), name="page_owner", after=parts.failed)
    wf.step(publish.s(stats, checked), name="publish", when=stats["rows"] > 0)
    wf.step(archive.s(day), name="archive", after=[checked, load])


@workflow(name="shop.prices")
def prices(wf: Builder) -> None:
    """More steps than are drawn one by one."""
    for number in range(STORES):
        loaded = wf.step(load_day.s(str(number)), name=f"load_{number}")
        wf.step(summarise.s(loaded), name=f"summarise_{number}")


TASKS = (load_day, clean, check, summarise, publish, page_owner, drop_day)


@dataclass(frozen=True)
class Flows:
    """What the pages of single workflows show."""

    failed: UUID
    running: UUID
    child: UUID
    wide: UUID


def fill_workflows() -> Flows:
    failed: WorkflowRun = nightly.using(unique_key="2026-11-22").enqueue("2026-11-22")
    run_due(*TASKS, errors="record")
    running: WorkflowRun = nightly.enqueue("2026-11-21")
    for _ in range(7):
        run_next(*TASKS, errors="record")
    child = Workflow.objects.filter(name=archive.name).earliest("id")
    wide: WorkflowRun = prices.enqueue()
    wide.pause()
    return Flows(failed.id, running.id, child.id, wide.id)
