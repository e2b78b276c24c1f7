"""The kinds of tasks in the mixture: how often each comes, and how each must end."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tests.chaos import tasks

Arguments = tuple[Any, ...]
SUCCEEDED = frozenset({"succeeded"})


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind: what is called, with what, and the statuses in which it may end."""

    name: str
    weight: float
    definition: Any
    arguments: Callable[[str, random.Random], Arguments]
    options: Callable[[random.Random], dict[str, Any]] = lambda chance: {}
    ends: frozenset[str] = SUCCEEDED
    most: int = 60
    """How many at most in one transaction; 1 where each is enqueued for itself."""
    workers: int = 1

    @property
    def is_atomic(self) -> bool:
        """Whether its effect commits with its success."""
        return bool(self.definition.options.atomic)

    def unique_key(self, arguments: Arguments) -> str:
        """The key that it holds, or none."""
        key = self.definition.options.unique_key
        return str(key(*arguments)) if callable(key) else str(key or "")


def _path_only(path: str, chance: random.Random) -> Arguments:
    return (path,)


def _briefly(path: str, chance: random.Random) -> Arguments:
    return path, chance.choice((0, 0, 0, 0.002, 0.01))


def _for_long(path: str, chance: random.Random) -> Arguments:
    return path, round(chance.uniform(0.1, 0.4), 2)


def _a_few_times(path: str, chance: random.Random) -> Arguments:
    return path, chance.choice((1, 1, 2))


def _with_key(path: str, chance: random.Random) -> Arguments:
    return path, str(chance.randrange(5))


def _soon(chance: random.Random) -> dict[str, Any]:
    return {"run_after": round(chance.uniform(0.05, 1.0), 2)}


def _urgent(chance: random.Random) -> dict[str, Any]:
    """A backlog must not keep a task that was taken over waiting."""
    return {"priority": 10}


def _for_several(chance: random.Random) -> dict[str, Any]:
    return {"workers": 2}


MIXTURE = (
    Kind(name="work", weight=30, definition=tasks.work, arguments=_briefly),
    Kind(name="act_atomically", weight=20, definition=tasks.act_atomically, arguments=_briefly),
    Kind(name="act", weight=5, definition=tasks.act, arguments=_path_only),
    Kind(name="work_async", weight=5, definition=tasks.work_async, arguments=_briefly),
    Kind(
        name="act_atomically_at_last", weight=2, definition=tasks.act_atomically_at_last,
        arguments=_a_few_times, most=10,
    ),
    Kind(name="later", weight=4, definition=tasks.work, arguments=_briefly, options=_soon),
    Kind(
        name="long", weight=2.5, definition=tasks.work, arguments=_for_long, options=_urgent, most=2
    ),
    Kind(
        name="long_atomic", weight=1, definition=tasks.act_atomically, arguments=_for_long,
        options=_urgent, most=2,
    ),
    Kind(
        name="fail_at_last", weight=3, definition=tasks.fail_at_last, arguments=_path_only,
        ends=frozenset({"failed"}), most=10,
    ),
    Kind(
        name="give_up", weight=2, definition=tasks.give_up, arguments=_path_only,
        ends=frozenset({"failed"}), most=10,
    ),
    Kind(
        name="cancel", weight=2, definition=tasks.cancel, arguments=_path_only,
        ends=frozenset({"cancelled"}), most=10,
    ),
    Kind(
        name="retry_later", weight=3, definition=tasks.retry_later, arguments=_a_few_times, most=10
    ),
    Kind(name="snooze", weight=3, definition=tasks.snooze, arguments=_a_few_times, most=10),
    Kind(
        name="crash_once", weight=0.7, definition=tasks.crash_once, arguments=_path_only, most=1
    ),
    Kind(name="alone", weight=8, definition=tasks.alone, arguments=_with_key, most=1),
    Kind(
        name="several", weight=3, definition=tasks.work, arguments=_briefly, options=_for_several,
        most=2, workers=2,
    ),
)  # fmt: skip


def mixture() -> tuple[Kind, ...]:
    """The kinds that this version of the package can run."""
    can_share = find_spec("taskqueue.engine.apart") is not None
    return tuple(kind for kind in MIXTURE if kind.workers == 1 or can_share)


BY_NAME = {kind.name: kind for kind in MIXTURE}
