"""Workflows that may be enqueued over REST, and some that cannot be built."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskqueue import task, workflow
from taskqueue.workflows import Builder
from tests.sample.rest_tasks import order, tell
from tests.sample.tasks import add


@workflow(api=True, version="2", sensitive={"token"}, deadline=timedelta(hours=1))
def deliver(wf: Builder, day: str, *, token: str = "", copies: int = 1) -> None:
    """Packs what was ordered that day, and tells of it."""
    packed = wf.step(order.s(copies, note=day), name="pack")
    wf.step(tell.s(packed), name="report")


@workflow(api=True, unique_key="only one")
def only_one(wf: Builder) -> None:
    wf.step(tell.s())


@workflow(api=True, unique_key="only one", on_duplicate="raise")
def only_one_or_raise(wf: Builder) -> None:
    wf.step(tell.s())


@workflow
def hidden(wf: Builder) -> None:
    wf.step(add.s(1, 2))


@workflow(api=True)
def unlucky(wf: Builder, secret: str) -> None:
    raise ValueError(f"no {secret}")


BROKEN: set[str] = set()


@task(api=True)
def mendable(name: str, before: object = None) -> str:
    if name in BROKEN:
        raise ValueError(f"{name} is broken")
    return name


@workflow(api=True)
def fragile(wf: Builder) -> None:
    load = wf.step(mendable.s("load"), name="load")
    wf.step(mendable.s("store", load), name="store")


@workflow(api=True)
def endless(wf: Builder) -> None:
    wf.step(endless.s())


LEAKED: list[Any] = []


@workflow(api=True)
def leaky(wf: Builder) -> None:
    """Uses a step of the builder before."""
    LEAKED.append(wf.step(order.s(1)))
    wf.step(tell.s(LEAKED[0]))


@workflow(api=True)
def wide(wf: Builder, maps: int, items: int) -> None:
    for number in range(maps):
        wf.step(order.map(range(items)), name=f"map{number}")
