"""Tasks for several workers, some of which are killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from taskqueue.models import Lease, Task
from tests.chaos import tasks
from tests.chaos.faults.base import Fault
from tests.chaos.kinds import Arguments, Kind

ENDS = frozenset({"succeeded"})


def _takes_a_while(path: str, chance: random.Random) -> Arguments:
    return path, round(chance.uniform(0.05, 0.4), 2)


def _for_three(chance: random.Random) -> dict[str, Any]:
    return {"workers": 3}


def _for_all(chance: random.Random) -> dict[str, Any]:
    return {"broadcast": True}


class SharersKilled(Fault):
    """Five workers take tasks that three of them must run; two are killed in the middle."""

    name = "sharers_killed"
    expectation = "exactly three leases succeed, on three workers; a lost one frees its place"
    share = 0.5
    seconds = 8.0
    fleet = (("process", 1),) * 5

    def prepare(self) -> None:
        self.stage.kinds += [
            Kind(
                name="for three", weight=20, definition=tasks.work, arguments=_takes_a_while,
                options=_for_three, most=2, workers=3, ends=ENDS,
            ),
            # A worker that dies before its part is not replaced: such a task may fail.
            Kind(
                name="for all", weight=2, definition=tasks.work, arguments=_takes_a_while,
                options=_for_all, most=1, ends=ENDS | {"failed"},
            ),
        ]  # fmt: skip
        super().prepare()

    def strike(self) -> None:
        stage = self.stage
        for share in (0.25, 0.5):
            stage.await_load(share)
            stage.pause(0, 1)
            worker = self.chance.choice(stage.alive())
            began = stage.now()
            worker.kill()
            stage.note(self.name, began, worker)
        stage.await_load(1)

    def look(self) -> Iterator[str]:
        shared = Task.objects.filter(metadata__kind="for three")
        if not shared.exists():
            yield "there was no task for three workers"
        for task in shared:
            names = Lease.objects.filter(task=task, status="succeeded").values_list("worker_id")
            if len(names) != 3 or len(set(names)) != 3:
                yield f"{task.id} succeeded on {list(names)}, not on three workers"
