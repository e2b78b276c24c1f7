"""A workflow with a group of unlike calls, a single step with limits; `path` is the journal."""

from __future__ import annotations

import random
from typing import Any

from taskqueue import fan_out, task, workflow
from taskqueue.workflows import Builder, StepHandle, group
from tests.chaos.workflow_bodies import (
    PATIENT,
    ended,
    fail_part,
    mended_part,
    order,
    part,
    spread,
    tell,
    together,
)
from tests.sample.worker_tasks import append

MOST_AT_ONCE, MOST_FAILURES = 3, 3
"""How many members of a mixture run side by side, and how many may fail, at most."""


@task(**PATIENT)
def given(value: Any, path: str) -> Any:
    """Returns what it was given, which is the result of a step outside of its group."""
    append(path, "start")
    return value


@task(**PATIENT)
def mix(path: str, number: int) -> Any:
    """Returns unlike calls, which become a workflow of their own."""
    append(path, "start")
    calls = [part.s(path, number), tell.s(path), chain_of(path, number)]
    return fan_out(calls, concurrency=2)


def chain_of(path: str, number: int) -> Any:
    """Three calls side by side, and what is given their results: as a member, a workflow."""
    return group(part.s(path, number + place) for place in range(3)) | together.s(path)


def random_members(path: str, chance: random.Random, first: StepHandle, key: str) -> list[Any]:
    """One call of each kind that a member may be, and some twice, in any order."""
    number = chance.randrange(1000)
    members = [
        part.s(path, number, chance.choice((0.0, 0.05))),
        part.using(run_after=0.2).s(path, number),
        part.using(workers=2).s(path, number),
        tell.s(path),
        mended_part.s(path, number),
        given.s(first, path),
        given.s(first, path) | given.s(path),
        spread.s(path, 1),
        mix.s(path, number),
        chain_of(path, number),
        group([part.s(path, number), tell.s(path)], concurrency=1),
        order.s(path, number, key),
    ]
    if chance.random() < 0.3:
        members.append(fail_part.s(path, number))
    chance.shuffle(members)
    return members


@workflow
def mixture(wf: Builder, path: str, number: int, seed: int, keys: list[str]) -> None:
    """Unlike calls in one step, some of which may fail, between two others."""
    chance = random.Random(seed)
    first = wf.step(part.si(path, number), name="first")
    mixed = wf.step(
        group(random_members(path, chance, first, keys[0])),
        name="mixed",
        concurrency=chance.randint(1, MOST_AT_ONCE),
        tolerate=chance.randint(0, MOST_FAILURES),
    )
    wf.step(together.s(mixed, path), name="last")
    wf.on_end(ended.si(path, keys[1]))
