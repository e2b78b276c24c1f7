"""The tasks and workflows that these tests build graphs of. Nobody runs them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskqueue import task, workflow
from taskqueue.workflows import Builder


@task
def load(day: str, token: str = "") -> dict[str, Any]:
    return {}


@task
def clean(path: str) -> str:
    return path


@task
def summarise(parts: list[str]) -> dict[str, int]:
    return {}


@task
def publish(stats: object) -> None: ...


@task
def drop(stats: object) -> None: ...


@task
def page(error: object) -> None: ...


@task
def note() -> None: ...


@task
def add(x: int, y: int) -> int:
    return x + y


@task
def move(source: str, target: str, *, quietly: bool = False) -> None: ...


@task
def index(ids: list[int]) -> int:
    return len(ids)


@task
def collect(*values: object, **named: object) -> None: ...


@task(unique_key="only")
def sync(account: int) -> None: ...


@task(takes_context=True)
def watched(context: object, path: str) -> None: ...


@task(broadcast=True)
def reload(setting: str) -> None: ...


@workflow
def child(wf: Builder, day: str, files: Any = ()) -> None:
    loaded = wf.step(load.s(day))
    wf.step(collect.s(loaded, files))


@workflow(deadline=timedelta(hours=6), sensitive={"token"}, api=True)
def nightly(wf: Builder, day: str, token: str) -> None:
    loaded = wf.step(load.s(day, token))
    parts = wf.step(clean.map(loaded["files"]), concurrency=50, tolerate=0.01)
    stats = wf.step(summarise.s(parts), compensate=drop.s(), on_failure="fail")
    wf.step(publish.s(stats), when=stats["rows"] > 0)
    wf.step(page.si(stats.error), after=stats.failed)
    wf.step(child.s(day), after=[parts, "publish"])


@workflow
def endless(wf: Builder) -> None:
    wf.step(endless.s())
