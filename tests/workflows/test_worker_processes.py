"""Fan-outs and contexts with real workers, which are killed in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskqueue import chain, group
from taskqueue.models import Member, StepCalls, StepEnd, Task, Workflow
from tests.conftest import Drain, StartWorker
from tests.sample.tasks import add, echo, sleep
from tests.sample.workflow_tasks import (
    WIDTHS,
    add_up,
    die_first,
    find,
    split_async,
    split_atomically,
)
from tests.worker_process import wait_until
from tests.workflows.steps_of import assert_settled

pytestmark = pytest.mark.slow
SHORT = {"LEASE_DURATION": 3, "PING_INTERVAL": 0.4, "TAKEOVER_INTERVAL": 0.3}


def by_a_plain_loop() -> tuple[int, set[str]]:
    """Return what the map-reduce gives, and the parts that it sees."""
    total, seen, level = 0, {"seen-0-0"}, [0]
    for depth, width in enumerate(WIDTHS, start=1):
        level = [part * 10 + number for part in level for number in range(width)]
        seen |= {f"seen-{depth}-{part}" for part in level}
    for part in level:
        total += part * part
    return total, seen


def test_a_map_reduce_of_three_levels_that_is_killed_gives_what_a_plain_loop_does(
    start_worker: StartWorker, drain: Drain, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    run = chain(find.s(0, 0, str(journal), 0.02), add_up.s()).enqueue()
    total, seen = by_a_plain_loop()

    for share in (0.1, 0.3, 0.6):
        worker = start_worker("--concurrency", "3", settings=SHORT)
        wait_until(
            lambda share=share: len(set(lines(journal))) > share * len(seen),
            60,
            what=f"{share} of the parts",
        )
        worker.kill()
    start_worker("--concurrency", "3", settings=SHORT)
    run.wait(120)

    assert run.status == "succeeded", run.errors
    assert run.return_value == total
    assert set(run.context) == seen
    assert Task.objects.filter(name=find.name).count() == len(seen)
    assert Member.objects.count() == len(seen) + 1
    assert_settled(run)


def test_unlike_members_on_workers_that_are_killed_keep_their_places(
    start_worker: StartWorker,
) -> None:
    calls = [sleep.si(0.05) | add.si(1, 2), add.s(3, 4), split_async.s(3), sleep.s(0.05), echo.s(5)]
    run = group(calls * 8, concurrency=4).enqueue()

    def ended() -> int:
        run.refresh()
        return run.step("group").ended

    for share in (8, 20):
        worker = start_worker("--concurrency", "3", settings=SHORT)
        wait_until(lambda share=share: ended() >= share, 60, what=f"{share} members")
        worker.kill()
    start_worker("--concurrency", "3", settings=SHORT)
    run.wait(120)

    assert run.status == "succeeded", run.errors
    assert run.return_value == [3, 7, [0, 1, 16], 0.05, [[5], {}]] * 8
    assert Workflow.objects.filter(parent_place__isnull=False).count() == 8
    assert not Workflow.objects.filter(finished_at=None).exists()
    assert not StepEnd.objects.exists()


def lines(journal: Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


@pytest.mark.parametrize(
    ("call", "result", "context"),
    [
        (split_atomically.s(4), [0, 1, 4, 9], {"count": 4}),
        (split_async.s(3), [0, 1, 16], {"place": 0, "step": "split_async"}),
        (die_first.s(""), [9], {"attempt": 2}),
    ],
)
def test_bodies_of_every_kind_fan_out_and_change_the_context(
    call: Any, result: object, context: object, drain: Drain
) -> None:
    run = call.enqueue()
    drain("--concurrency", "2", settings=SHORT)
    run.refresh()
    assert run.return_value == result
    assert run.context == context
    assert not StepEnd.objects.exists()
    assert not StepCalls.objects.exists()
    assert_settled(run)
