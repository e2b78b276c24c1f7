"""Slots inside a worker: a queue or a definition has no more of them at once, the rest is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from taskqueue import InvalidTask
from taskqueue.declarations.serving import parse_definition_slots
from taskqueue.engine.connections import transaction
from taskqueue.engine.rows import Claimed
from taskqueue.models import Lease, Task
from taskqueue.worker.claims import Claims
from taskqueue.worker.frames import EXCLUDED
from taskqueue.worker.limits import Room, SlotLimits
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.receiving import Receiver
from tests.conftest import StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker.played import PlayedWorker
from tests.worker.test_changes import bodies, let_go, started
from tests.worker_process import wait_until

LEASE = timedelta(seconds=30)
NOOP, ADD = tasks.noop.name, tasks.add.name


def enqueue(name: str, number: int, queue: str = "default", **options: int) -> None:
    task = {"noop": tasks.noop, "add": tasks.add}[name]
    args = () if name == "noop" else (1, 2)
    task.using(queue_name=queue, **options).enqueue_many([(args, {})] * number)


def claim(want: int, room: Room, queues: str = "", *, is_strict: bool = False) -> Counter[str]:
    """Claim as a worker does with that room; how many of each queue and definition."""
    claims = Claims(
        QueueQuotas.parse(queues, is_strict=is_strict),
        worker_name="w1", slots=want, lease_duration=LEASE,
    )  # fmt: skip
    claims.begin(room, slots=want)
    with transaction(connection):
        return counted(claims.claim(connection, want, []))


def counted(rows: Iterable[Claimed]) -> Counter[str]:
    rows = list(rows)
    return Counter([row.queue_name for row in rows]) + Counter([row.name for row in rows])


@pytest.mark.django_db
@pytest.mark.parametrize("is_strict", [False, True])
def test_a_full_queue_leaves_the_claim_to_the_others(is_strict: bool) -> None:
    enqueue("noop", 10, "mail")
    enqueue("noop", 10, "web")
    made = claim(6, Room({"mail": 2}, {}), "mail=9@2,web", is_strict=is_strict)
    assert (made["mail"], made["web"]) == (2, 4)
    assert claim(6, Room({"mail": 0}, {}), "mail=9@2,web", is_strict=is_strict)["mail"] == 0


@pytest.mark.django_db
def test_a_worker_of_all_queues_may_not_have_limits_of_queues_but_of_definitions() -> None:
    enqueue("noop", 10, "mail")
    enqueue("add", 10, "web")
    made = claim(8, Room({}, {NOOP: 1}))
    assert (made[NOOP], made[ADD]) == (1, 7)


@pytest.mark.django_db
def test_no_more_of_a_definition_is_claimed_than_there_is_room_for() -> None:
    enqueue("noop", 10)
    enqueue("add", 3)
    made = claim(8, Room({}, {NOOP: 2}))
    assert (made[NOOP], made[ADD]) == (2, 3)
    assert claim(8, Room({}, {NOOP: 0})) == Counter()
    assert claim(8, Room({}, {NOOP: 8}))[NOOP] == 8


@pytest.mark.django_db
def test_limited_tasks_that_stand_behind_others_are_claimed_where_slots_are_left() -> None:
    enqueue("add", 5)
    enqueue("noop", 5)
    made = claim(9, Room({}, {NOOP: 3}))
    assert (made[NOOP], made[ADD]) == (3, 5)


@pytest.mark.django_db
def test_limits_of_queues_and_definitions_hold_together() -> None:
    enqueue("noop", 9, "mail")
    enqueue("add", 9, "mail")
    enqueue("add", 9, "web")
    made = claim(9, Room({"mail": 3}, {NOOP: 1, ADD: 5}), "mail=5@3,web")
    assert made["mail"] == 3
    assert made[NOOP] <= 1
    assert made[ADD] == 5


@pytest.mark.django_db
def test_limits_hold_for_tasks_of_named_workers_too() -> None:
    task = tasks.noop.using(worker_names=["w1"])
    task.enqueue_many([((), {})] * 5)
    assert claim(4, Room({}, {NOOP: 1}))[NOOP] == 1
    assert claim(4, Room({"default": 0}, {}), "default@1") == Counter()
    assert Task.objects.filter(status="running").count() == 1


def test_held_tasks_take_room_of_queues_and_definitions() -> None:
    limits = SlotLimits(QueueQuotas.parse("mail=3@2,web"), {"export": 1})
    held = [Held("mail", "export"), Held("mail", "send"), Held("web", "send")]
    room = limits.room(held)
    assert (room.queues, room.definitions) == ({"mail": 0}, {"export": 0})
    assert limits.room(held[1:]).reopens(room)
    assert not limits.room(held).reopens(room)


class Held:
    def __init__(self, queue_name: str, name: str) -> None:
        self.queue_name, self.name = queue_name, name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mail@", "behind @, must be a whole number from 1 to 10000, not ''"),
        ("mail@0", "not '0'"),
        ("mail=2@x", "not 'x'"),
        ("mail=2@10001", "not '10001'"),
        ("mail@2=3", "not '2=3'"),
    ],
)
def test_slots_of_queues_that_cannot_be_read_say_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        QueueQuotas.parse(text)


def test_slots_are_read_as_they_are_written() -> None:
    choice = QueueQuotas.parse("mail=3@2, web@1, low")
    assert choice.weights == {"mail": 3, "web": 1, "low": 1}
    assert choice.slots == {"mail": 2, "web": 1}
    assert choice.choice == "mail=3@2,web=1@1,low=1"
    assert parse_definition_slots(" a.b=1, c=22,") == {"a.b": 1, "c": 22}
    assert parse_definition_slots("") == {}


# With processes
@pytest.mark.slow
def test_a_worker_runs_no_more_bodies_of_a_queue_than_it_has_slots_for(
    start_worker: StartWorker, tmp_path: Path, pool: str
) -> None:
    mail = bodies(tmp_path, 5, queue="mail")
    web = bodies(tmp_path, 2, queue="web")
    start_worker(
        "--concurrency", "4", "--queues", "mail=9@2,web", "--strict", "--pool", pool,
        settings={"PING_INTERVAL": 0.3},
    )  # fmt: skip
    wait_until(lambda: started(tmp_path, "web") == 2, what="bodies of the other queue")
    wait_until(lambda: started(tmp_path, "mail") == 2, what="two bodies of the limited one")
    assert Lease.objects.filter(status="running").count() == 4
    (tmp_path / "mail-0" / "go").touch()
    wait_until(lambda: started(tmp_path, "mail") == 3, what="the next body")
    assert Lease.objects.filter(status="running").count() == 4
    let_go(tmp_path)
    for result in [*mail, *web]:
        assert result.wait(timeout=timedelta(seconds=20)).status == "succeeded"
    assert most_at_once("mail") <= 2


@pytest.mark.slow
def test_short_bodies_of_a_limited_definition_never_run_beside_each_other(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    limited = worker_tasks.work.enqueue_many([((str(journal), 0.005), {})] * 40)
    others = tasks.add.enqueue_many([((1, 2), {})] * 300)
    start_worker(
        "--concurrency", "4", "--definition-slots", f"{worker_tasks.work.name}=1", "--drain",
        settings={"PING_INTERVAL": 0.3},
    ).wait(60)  # fmt: skip
    assert Task.objects.filter(status="succeeded").count() == len(limited) + len(others)
    # By the bodies themselves: what two connections record of them may overlap by milliseconds.
    marks = [line.split()[-1] for line in journal.read_text().splitlines()]
    assert marks == ["start", "end"] * len(limited)


def most_at_once(queue_name: str) -> int:
    """The most leases of the queue's tasks that were held at the same moment."""
    ids = Task.objects.filter(queue_name=queue_name).values("id")
    leases = Lease.objects.filter(task_id__in=ids)
    moments = [(lease.claimed_at, 1) for lease in leases]
    moments += [(lease.finished_at, -1) for lease in leases if lease.finished_at]
    held = most = 0
    for _, change in sorted(moments):
        held += change
        most = max(most, held)
    return most


def test_the_list_of_a_new_child_replaces_the_definitions_that_were_excluded() -> None:
    worker = PlayedWorker()
    worker.dispatcher.prefetch = None
    limits = worker.dispatcher.state.limits
    for excluded in (["export", "resize"], ["export"], []):
        child: Any = SimpleNamespace(receive=lambda: ([(EXCLUDED, excluded)], False))  # noqa: B023
        Receiver(worker.dispatcher).receive(child, 0.0, lambda sock: None)

        assert limits.of_definitions == dict.fromkeys(excluded, 0)
    assert not limits
