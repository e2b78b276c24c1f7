"""The bodies and graphs of the workflows of a run; `path` is the journal."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from django.db import connection

from taskqueue import Fixed, GiveUp, current, fan_out, task, workflow
from taskqueue.engine.workflows.fan_outs import keep_fan_out
from taskqueue.workflows import Builder, StepHandle, chord
from tests.sample.worker_tasks import append

PATIENT: dict[str, Any] = {"max_crashes": 100, "crash_delay": 0}
WIDTH = 8
"""Members of a chord."""
DEPTH, BRANCHES = 2, 4
"""Of a tree of calls that bodies find."""
LAST = "last"
"""The key of the context that all set."""
NEAR = 40
"""A step depends on some of so many that were built before it."""


@task(**PATIENT)
def part(path: str, number: int, seconds: float = 0.0) -> int:
    """Appends, and returns its number."""
    append(path, "start")
    time.sleep(seconds)
    return number


@task(max_attempts=2, backoff=Fixed(0.05), **PATIENT)
def fail_part(path: str, number: int) -> int:
    """Fails for good at its second attempt."""
    append(path, "start")
    if number % 2:
        raise GiveUp("no use")
    raise ValueError(number)


@task(**PATIENT)
def mended_part(path: str, number: int) -> int:
    """Fails for good in its first attempts; one or two retries by hand mend it."""
    append(path, "start")
    if current().attempt <= 1 + number % 2:
        raise GiveUp("not mended yet")
    return number


@task(**PATIENT)
def together(values: list[int], path: str) -> list[int]:
    """The end of a chord: returns the results of its members, in order."""
    append(path, "start")
    return values


@task(**PATIENT)
def ended(path: str, key: str) -> str:
    """Called at the end of a workflow, which has the same key."""
    append(path, "start")
    return key


def new_key(chance: random.Random) -> str:
    """A key that no other workflow has."""
    return f"{chance.getrandbits(64):016x}"


def random_chord(path: str, chance: random.Random) -> Any:
    """A chord of a few short members."""
    pause = chance.choice((0.0, 0.0, 0.005, 0.05))
    first = chance.randrange(1000)
    members = [part.s(path, first + place, pause) for place in range(WIDTH)]
    canvas = chord(members, together.s(path))
    return canvas.on_end(ended.si(path, new_key(chance))) if chance.random() < 0.5 else canvas


@workflow
def random_graph(wf: Builder, path: str, seed: int, size: int) -> None:
    """Steps that depend on each other as the seed says: tasks, maps, failures, and conditions."""
    chance = random.Random(seed)
    steps: list[StepHandle] = []
    for number in range(size):
        near = steps[-NEAR:]
        chosen = chance.sample(near, min(len(near), chance.choice((0, 1, 1, 2, 3))))
        settings: dict[str, Any] = {"name": f"step{number}", "after": chosen}
        call: Any = part.si(path, number)
        lot = chance.random()
        if lot < 0.06:
            call = chance.choice((fail_part, mended_part)).si(path, number)
            settings["on_failure"] = chance.choice(("continue", "continue", "continue", "fail"))
        elif lot < 0.10 and chosen:
            settings["after"] = [chance.choice((each.failed, each.ended)) for each in chosen]
        elif lot < 0.16:
            call = part.starmap([(path, place) for place in range(chance.choice((0, 2, 3, 5)))])
            settings["concurrency"] = 2
        elif lot < 0.22 and chosen:
            settings["when"] = chosen[0].is_null() if chance.random() < 0.2 else chosen[0] > 50
        steps.append(wf.step(call, **settings))


@workflow
def sides(wf: Builder, path: str, seconds: float) -> None:
    """Steps that depend on nothing, and take the same time."""
    for place in range(WIDTH):
        wf.step(part.si(path, place, seconds), name=f"side{place}")


def leave_mark() -> str | None:
    """Set a key of this attempt in the context, and the last mark; what was the last so far."""
    own = current().workflow
    mark = f"{own.step}/{own.place}/{current().attempt}"
    own.update(**{mark: True, LAST: mark})
    return own.get(LAST)


@task(**PATIENT)
def tell(path: str, seconds: float = 0.0) -> list[Any]:
    """Leaves its mark, and returns the last one that it found."""
    append(path, "start")
    seen = leave_mark()
    time.sleep(seconds)
    return ["found", seen]


@workflow
def story(wf: Builder, path: str, number: int, seconds: float = 0.0) -> None:
    """Steps that leave marks, one after the other, and one that fails until it is retried."""
    before = wf.step(tell.starmap([(path, seconds)] * 3), name="first")
    wf.step(mended_part.si(path, number), name="mended")
    for name in ("second", "third"):
        before = wf.step(tell.starmap([(path, seconds)] * 3), name=name, after=[before])
    wf.step(tell.si(path, seconds), name="last", after=[before])


@task(**PATIENT)
def undo(result: Any, path: str) -> Any:
    """A compensation: returns what it was given."""
    append(path, "start")
    return result


@workflow
def order(wf: Builder, path: str, number: int, key: str) -> None:
    """Steps that are undone, for the last one fails at first, and often again."""
    paid = wf.step(part.si(path, number), name="pay", compensate=undo.s(path))
    calls = [(path, number + place) for place in range(3)]
    packed = wf.step(part.starmap(calls), name="pack", after=[paid], compensate=undo.s(path))
    wf.step(part.si(path, number), name="label", after=[paid], compensate=undo.s(path))
    last = (mended_part, fail_part, part)[number % 3]
    wf.step(last.si(path, number), name="ship", after=[packed])
    wf.on_end(ended.si(path, key))


@workflow
def family(wf: Builder, path: str, number: int, keys: list[str]) -> None:
    """Two workflows as steps, one behind the other, and a task between others."""
    first = wf.step(order.s(path, number, keys[0]), name="first", on_failure="continue")
    second = wf.step(order.s(path, number + 1, keys[1]), name="second", after=[first])
    wf.step(part.si(path, number), name="after", after=[second])
    wf.on_end(ended.si(path, keys[2]))


@task(**PATIENT)
def spread(path: str, depth: int, name: str = "", made_by: int = 0, seconds: float = 0.0) -> Any:
    """Returns calls of itself, or at the end of the tree its name; and tells the context of it."""
    append(path, "start")
    leave_mark()
    time.sleep(seconds)
    return branches(path, depth, name, seconds) if depth else [name, made_by]


def branches(path: str, depth: int, name: str = "", seconds: float = 0.0) -> Any:
    """The calls that this attempt of `spread` returns."""
    made_by = current().attempt
    calls = [((path, depth - 1, f"{name}{n}", made_by, seconds), {}) for n in range(BRANCHES)]
    return fan_out(spread, calls)


@task(**PATIENT)
def spread_late(path: str, depth: int) -> Any:
    """Dies in its first attempt, once its calls are written."""
    append(path, "start")
    leave_mark()
    calls = branches(path, depth)
    if current().attempt == 1:
        lease_id, task_id = current()._lease_id, current().task_id
        keep_fan_out(connection, calls, lease_id=lease_id, task_id=task_id)
        os._exit(9)
    return calls


@task(**PATIENT)
def gathered(values: Any, path: str) -> Any:
    """What follows a tree: returns the names of its leaves, nested as they were made."""
    append(path, "start")
    return names_in(values)


def names_in(values: Any) -> Any:
    """The names of leaves, without who made them."""
    is_leaf = isinstance(values[0], str)
    return values[0] if is_leaf else [names_in(value) for value in values]


def names_of(depth: int, name: str = "") -> Any:
    """The names that a tree of that depth gives."""
    return [names_of(depth - 1, f"{name}{n}") for n in range(BRANCHES)] if depth else name


def random_tree(path: str, chance: random.Random) -> Any:
    """A tree of calls that bodies find, and what follows it."""
    seconds = chance.choice((0.0, 0.005, 0.05))
    return spread.s(path, DEPTH, seconds=seconds) | gathered.s(path)
