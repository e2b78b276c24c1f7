"""Sessions that claim, record, cancel and change limits at once: never more than the limit."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue import control
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED
from taskqueue.declarations.limits import Concurrency, Sequence
from taskqueue.engine.connections import orm_transaction, transaction
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.statement import change, fetch
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Lease, LimitNote, Slot, Task
from tests.engine.limit_steps import repairs, take, take_and_tell
from tests.engine.steps import another_connection, outcome, run_at_once
from tests.sample.tasks import add
from tests.sharing_out import IS_FULL, SEED

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

SESSIONS, SHARED, A_KEY = 5, 6, 2
SHARE = 1.0 if IS_FULL else 0.4
"""Of the tasks that the races are about; all of them with TASKQUEUE_FULL=1."""
LONGEST = 60.0
keyed = add.using(
    concurrency=[Concurrency(A_KEY, key="a", name="key"), Concurrency(SHARED, name="all")]
)
ordered = add.using(
    sequence=Sequence("a", name="order"), concurrency=Concurrency(SHARED, name="all"),
    max_attempts=9, backoff=None,
)  # fmt: skip
# Instants at which more run under a limiter than it allows, by the leases' own times. What takes a
# place cannot be told from slots, which are gone.
OVER = """
SELECT limiter ->> 'name', limiter ->> 'key', lease.claimed_at, count(*)
FROM taskqueue_lease AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id
CROSS JOIN LATERAL jsonb_array_elements(task.limits -> 'limits') AS limiter
JOIN taskqueue_task AS other_task ON other_task.limits -> 'limits' @> jsonb_build_array(limiter)
JOIN taskqueue_lease AS other ON other.task_id = other_task.id
    AND other.claimed_at <= lease.claimed_at
    AND COALESCE(other.finished_at, 'infinity') > lease.claimed_at
GROUP BY lease.id, 1, 2, 3, limiter -> 'concurrency'
HAVING count(*) > (limiter -> 'concurrency')::int
"""
OVERLAPS = """
SELECT count(*)
FROM taskqueue_lease AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id AND task.limits ? 'sequence'
JOIN taskqueue_task AS other_task ON other_task.partition = task.partition
JOIN taskqueue_lease AS other ON other.task_id = other_task.id AND other.id <> lease.id
    AND other.claimed_at <= lease.claimed_at
    AND COALESCE(other.finished_at, 'infinity') > lease.claimed_at
"""


def work_until_all_have_ended(number: int, *, is_within: bool = False) -> None:
    """Claim a few, hold them for moments, and record them; in one transaction, or in two."""
    chance, held = random.Random(number), []
    policy, deadline = EndPolicy.of(get_settings()), time.monotonic() + LONGEST

    def end_some(worker: BaseDatabaseWrapper) -> None:
        ended = [held.pop(0) for _ in range(chance.randrange(len(held) + 1))]
        kinds = [chance.choice([OutcomeKind.SUCCEEDED] * 5 + [OutcomeKind.UNSTARTED])
                 for _ in ended]  # fmt: skip
        outcomes = [outcome(row, kind) for row, kind in zip(ended, kinds, strict=True)]
        record(worker, outcomes, policy=policy)

    with another_connection() as worker:
        while has_open(worker) or held:
            assert time.monotonic() < deadline, "Tasks are left."
            want = chance.randrange(1, 6)
            options = {"worker": f"w{number}", "connection": worker}
            if is_within:
                with transaction(worker):
                    end_some(worker)
                    limited = take_and_tell(want, is_within=True, **options)
                held += limited.claimed
                if limited.is_left:
                    held += take(want, **options)
            else:
                held += take(want, **options)
                time.sleep(chance.uniform(0, 0.004))
                with transaction(worker):
                    end_some(worker)


def has_open(worker: BaseDatabaseWrapper) -> bool:
    rows = "SELECT EXISTS (SELECT 1 FROM taskqueue_task WHERE finished_at IS NULL)"
    return bool(fetch(worker, rows)[0][0])


def in_turn(acts: list[Callable[[], None]], is_over: threading.Event) -> None:
    """Do one after the other until all is over."""
    while not is_over.wait(0.002):
        try:
            acts[0]()
        except TaskQueueError:
            pass
        acts.append(acts.pop(0))


def race(*more: Callable[[], None], is_within: bool = False) -> None:
    """Let sessions work until all tasks have ended, and look at what they leave."""
    is_over = threading.Event()

    def work(number: int) -> None:
        try:
            work_until_all_have_ended(number, is_within=is_within and number % 2 == 0)
        finally:
            done.append(number)
            if len(done) == SESSIONS:
                is_over.set()

    done: list[int] = []
    calls = [lambda number=number: work(number) for number in range(SESSIONS)]
    calls += [lambda act=act: in_turn([act], is_over) for act in more]
    run_at_once(calls, timeout=2 * LONGEST)
    take()
    assert fetch(connection, OVER) == []
    assert fetch(connection, OVERLAPS) == [(0,)]
    assert not Task.objects.exclude(status__in=FINISHED).exists()
    assert not Slot.objects.exists()
    assert not LimitNote.objects.exists()
    assert repairs() == 0


def enqueue_both(with_keys: int, in_order: int) -> int:
    """Enqueue a share of so many tasks of both kinds; how many these are."""
    of_keys, of_order = round(with_keys * SHARE), round(in_order * SHARE)
    keyed.enqueue_many([((number % 20, number), {}) for number in range(of_keys)])
    if of_order:
        ordered.enqueue_many([((number % 8, number), {}) for number in range(of_order)])
    return of_keys + of_order


@pytest.mark.parametrize("is_within", [False, True] if IS_FULL else [bool(SEED % 2)])
def test_claims_and_records_at_once_stay_within_their_limits(is_within: bool) -> None:
    count = enqueue_both(400, 80)
    race(is_within=is_within)
    assert Lease.objects.filter(status="succeeded").count() == count


def test_verbs_in_between_change_nothing_of_that() -> None:
    enqueue_both(300, 60)
    chance = random.Random(1)

    def some_task(**having: object) -> Task | None:
        return Task.objects.filter(**having).order_by("?").first()

    def cancel() -> None:
        if (task := some_task(status="ready")) is not None and chance.random() < 0.2:
            control.cancel(task.id)

    def update() -> None:
        if (task := some_task(status="ready")) is not None:
            changes = {"priority": chance.randrange(9)}
            if task.limits and "sequence" in task.limits:
                changes = {"max_attempts": 7}
            control.update(task.id, changes)

    def hold() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "SELECT 1 FROM taskqueue_task WHERE status = 'ready' ORDER BY random() LIMIT 9"
                " FOR UPDATE SKIP LOCKED"
            )
            time.sleep(0.01)
            cursor.execute("COMMIT")

    race(cancel, update, hold)


def test_limits_that_change_in_between_let_everything_end() -> None:
    enqueue_both(300, 0)
    take(1)
    Lease.objects.all().delete()
    Task.objects.filter(status="running").delete()

    def change() -> None:
        name = random.choice(["key", "all"])
        control.override_limit(name, concurrency=random.choice([0, 1]))
        time.sleep(0.01)
        control.reset_limit(name)

    try:
        race(change)
    except DatabaseError as error:
        raise AssertionError(f"A verb and a claim waited for each other: {error}") from error


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_worker_sees_what_others_commit_whatever_the_isolation_of_the_database(
    level: str,
) -> None:
    """A count by the snapshot of an earlier statement would let too many start."""
    database = connection.settings_dict["NAME"]
    setting = f'ALTER DATABASE "{database}" {{}} default_transaction_isolation'
    change(connection, setting.format("SET") + f" = '{level}'")
    try:
        with another_connection() as worker:
            for kind_of_transaction in (transaction, orm_transaction):
                with kind_of_transaction(worker):
                    assert fetch(worker, "SHOW transaction_isolation") == [("read committed",)]
    finally:
        change(connection, setting.format("RESET"))
