"""The verbs on all tasks that fit a filter: counted first, in chunks, each task audited."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection as default_connection
from django.db import transaction

from taskqueue import InvalidTask
from taskqueue.control import (
    TaskFilter,
    cancel_many,
    dry_run,
    request_stop_many,
    reschedule_many,
    retry_many,
    run_now_many,
    update_many,
)
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction as own_transaction
from taskqueue.engine.control import bulk
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.multi_worker_task import lock_shared
from taskqueue.engine.record import record
from taskqueue.engine.statement import change
from taskqueue.models import Audit, Lease, Task
from tests.engine.steps import (
    Undo,
    another_connection,
    claim,
    claim_one,
    end,
    future,
    outcome,
    past,
    policy,
    run_at_once,
)
from tests.engine.test_apart import take
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 3)


def statuses() -> dict[str, int]:
    return dict(Counter(Task.objects.values_list("status", flat=True)))


def fill(count: int = 10, **options: Any) -> None:
    noop.using(**options).enqueue_many([((), {})] * count)


def failed_tasks(count: int = 10) -> None:
    fill(count)
    for claimed in claim():
        end(claimed, OutcomeKind.FAILED, error_class="shop.errors.NoStock")


def test_all_that_fit_are_cancelled_and_each_is_audited() -> None:
    fill(10, queue_name="mail")
    fill(2)
    claim(1, queue="mail")
    bulk_outcome = cancel_many(TaskFilter(queue_name="mail"), by="anna", reason="the wrong list")
    assert (bulk_outcome.matched, bulk_outcome.done, bulk_outcome.refused) == (10, 10, 0)
    assert statuses() == {"cancelled": 9, "running": 1, "ready": 2}
    assert Lease.objects.get().stop_requested_by == "anna"
    lines = Audit.objects.filter(actor="anna", reason="the wrong list")
    assert Counter(lines.values_list("verb", flat=True)) == {"cancel": 9, "stop": 1}
    assert lines.values("subject").distinct().count() == 10


def test_tasks_in_the_wrong_status_are_counted_as_refused() -> None:
    fill(10)
    for claimed in claim(4):
        end(claimed, OutcomeKind.SUCCEEDED)
    assert tuple(cancel_many(TaskFilter(name=noop.name))) == (10, 6)
    assert statuses() == {"cancelled": 6, "succeeded": 4}


def test_a_dry_run_counts_and_writes_nothing() -> None:
    fill(5)
    claim(2)
    which = TaskFilter(everything=True)
    assert tuple(dry_run(which, "cancel")) == (5, 5)
    assert tuple(dry_run(which, "stop")) == (5, 2)
    assert tuple(dry_run(which, "retry")) == (5, 0)
    assert statuses() == {"ready": 3, "running": 2}
    assert not Audit.objects.exists()


def test_tasks_that_failed_with_one_error_are_retried() -> None:
    failed_tasks(7)
    add.enqueue(1)
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.ValueError")
    retried = retry_many(TaskFilter(statuses=["failed"], error_class="NoStock"))
    assert tuple(retried) == (7, 7)
    assert statuses() == {"ready": 7, "failed": 1}


def test_a_bulk_cancel_asks_running_tasks_to_stop() -> None:
    fill(5)
    claim(4)
    assert tuple(request_stop_many(TaskFilter(worker="w1"))) == (4, 4)
    assert Lease.objects.filter(stop_requested_at__isnull=False).count() == 4
    # Asked again, they remember who was first.
    assert tuple(request_stop_many(TaskFilter(worker="w1"), by="late")) == (4, 4)
    assert not Lease.objects.filter(stop_requested_by="late").exists()
    assert Audit.objects.filter(actor="late", detail="asked before by ''").count() == 4
    assert Audit.objects.count() == 8


def test_time_and_terms_change_for_all() -> None:
    fill(7, run_after=3600)
    which = TaskFilter(statuses=["scheduled"])
    assert tuple(reschedule_many(which, timedelta(hours=5))) == (7, 7)
    assert Task.objects.filter(run_after__gt=future(timedelta(hours=4))).count() == 7
    assert tuple(update_many(which, {"priority": 5, "queue_name": "mail"})) == (7, 7)
    assert Task.objects.filter(priority=5, queue_name="mail").count() == 7
    assert tuple(run_now_many(which)) == (7, 7)
    assert statuses() == {"ready": 7}
    assert Audit.objects.count() == 21


def test_a_change_that_does_not_fit_one_task_is_refused_for_it_alone() -> None:
    fill(4)
    fill(2, lease_duration=9)
    updated = update_many(TaskFilter(everything=True), {"ping_interval": 5})
    assert (updated.matched, updated.done, updated.refused) == (6, 4, 2)


def test_a_change_that_cannot_be_is_refused_before_anything_is_written() -> None:
    fill(4)
    with pytest.raises(InvalidTask):
        update_many(TaskFilter(everything=True), {"priority": 500})
    with pytest.raises(InvalidTask, match="at most a third"):
        update_many(TaskFilter(everything=True), {"ping_interval": 100, "lease_duration": 1})
    with pytest.raises(InvalidTask):
        reschedule_many(TaskFilter(everything=True), past().replace(tzinfo=None))
    assert not Audit.objects.exists()


def test_tasks_enqueued_during_a_bulk_action_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a bulk act on a busy queue might never end."""
    fill(7)
    cancelling = TASK_VERBS["cancel"]

    def cancel_while_others_enqueue(*args: Any, **options: Any) -> Any:
        fill(3)
        return cancelling.each(*args, **options)

    monkeypatch.setitem(BULK_VERBS, "cancel", replace(cancelling, each=cancel_while_others_enqueue))
    assert tuple(cancel_many(TaskFilter(name=noop.name))) == (7, 7)
    assert statuses() == {"cancelled": 7, "ready": 9}


@pytest.mark.django_db(transaction=True)
def test_each_chunk_commits_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(7)
    cancelling = TASK_VERBS["cancel"]
    chunks: list[int] = []

    def fail_at_the_third(selection: Any) -> Any:
        assert selection.connection.in_atomic_block
        chunks.append(len(selection.ids))
        if len(chunks) == 3:
            raise RuntimeError("the plug was pulled")
        return cancelling.each(selection)

    monkeypatch.setitem(BULK_VERBS, "cancel", replace(cancelling, each=fail_at_the_third))
    with pytest.raises(RuntimeError):
        cancel_many(TaskFilter(everything=True))
    assert chunks == [3, 3, 1]
    assert statuses() == {"cancelled": 6, "ready": 1}
    assert Audit.objects.count() == 6


def test_the_callers_transaction_holds_it_all() -> None:
    fill(5)
    with suppress(Undo), transaction.atomic():
        cancel_many(TaskFilter(everything=True))
        raise Undo
    assert statuses() == {"ready": 5}


def test_a_filter_takes_what_fits_all_that_is_given() -> None:
    fill(2, queue_name="mail")
    fill(3)
    one = noop.using(queue_name="mail", priority=3).enqueue()
    claim_one(queue="mail", size=1, worker="w7")

    def count(**choice: Any) -> int:
        return dry_run(TaskFilter(**choice), "cancel").matched

    assert count(ids=[one.id]) == 1
    assert count(queue_name="mail") == 3
    assert count(queue_name="mail", statuses=["ready"]) == 2
    assert count(statuses=["ready", "running"]) == 6
    assert count(worker="w7") == count(worker="w7", ids=[one.id]) == 1
    assert count(worker="w8") == 0
    assert (count(enqueued_after=past()), count(enqueued_before=past())) == (6, 0)
    assert count(name=add.name) == 0
    assert count(everything=True) == 6


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "or pass everything=True"),
        ({"everything": True, "ids": []}, "or pass everything=True"),
        ({"ids": ["nope"]}, "'nope' is not the id of a task"),
        ({"ids": [5]}, "5 is not the id of a task"),
        ({"everything": True, "name": "x"}, "or pass everything=True"),
        ({"statuses": ["runing"]}, "Did you mean 'running'"),
        ({"statuses": ["x"]}, "Choose from"),
        ({"enqueued_after": past().replace(tzinfo=None)}, "aware"),
    ],
)
def test_a_filter_that_says_nothing_or_nonsense_is_refused(
    choice: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TaskFilter(**choice)


@pytest.mark.parametrize("choice", [{"ids": []}, {"statuses": []}, {"ids": [], "name": noop.name}])
def test_an_empty_choice_is_none_of_them_and_not_all(choice: dict[str, Any]) -> None:
    fill(2)
    which = TaskFilter(**choice)
    assert tuple(cancel_many(which)) == tuple(dry_run(which, "cancel")) == (0, 0)
    assert statuses() == {"ready": 2}


def test_tasks_are_chosen_by_handles_and_texts_of_ids_too() -> None:
    one, two = noop.enqueue(), noop.enqueue()
    assert tuple(cancel_many(TaskFilter(ids=[one, str(two.id)]))) == (2, 2)


@pytest.mark.parametrize("name", ["name", "queue_name", "worker", "error_class"])
@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_text_that_cannot_be_stored_fits_nothing(name: str, text: str) -> None:
    fill(1)
    assert tuple(cancel_many(TaskFilter(**{name: text}))) == (0, 0)


def test_a_dry_run_of_no_verb_names_the_verbs() -> None:
    with pytest.raises(ValueError, match=r"'bogus' is not a bulk action.*'cancel'.*'update'"):
        dry_run(TaskFilter(everything=True), "bogus")


def test_a_dry_run_of_retry_knows_what_has_nothing_to_run_again() -> None:
    noop.using(workers=2).enqueue()
    for worker in ("w1", "w2"):
        end(take(worker)[0], OutcomeKind.SUCCEEDED)
    which = TaskFilter(everything=True)
    assert tuple(dry_run(which, "retry")) == tuple(retry_many(which)) == (1, 0)


def test_one_status_is_not_several() -> None:
    with pytest.raises(TypeError, match="takes several values"):
        TaskFilter(statuses="ready")


def test_tasks_that_changed_since_they_were_found_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever cancels what is ready does not want to stop what runs."""
    fill(7)
    cancelling = TASK_VERBS["cancel"]

    def cancel_what_a_worker_was_quicker_to_claim(*args: Any, **options: Any) -> Any:
        claim(1)
        return cancelling.each(*args, **options)

    quicker = replace(cancelling, each=cancel_what_a_worker_was_quicker_to_claim)
    monkeypatch.setitem(BULK_VERBS, "cancel", quicker)
    cancelled = cancel_many(TaskFilter(statuses=["ready"]))
    assert (cancelled.matched, cancelled.done) == (7, 4)
    assert not Lease.objects.filter(stop_requested_at__isnull=False).exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_are_cancelled_while_workers_claim_and_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for anybody in a circle, and each task is cancelled, asked, or had ended."""
    monkeypatch.setattr(bulk, "CHUNK", 40)
    fill(400)
    outcomes: list[bulk.BulkOutcome] = []

    def work(name: str) -> None:
        with another_connection() as own:
            for _ in range(40):
                with own_transaction(own):
                    claimed = claim(5, connection=own, worker=name)
                with own_transaction(own):
                    ended = [outcome(each, OutcomeKind.SUCCEEDED) for each in claimed]
                    record(own, ended, policy=policy())

    run_at_once(
        [
            lambda: work("w1"),
            lambda: work("w2"),
            lambda: outcomes.append(cancel_many(TaskFilter(everything=True))),
            lambda: outcomes.append(cancel_many(TaskFilter(name=noop.name))),
        ]
    )
    assert statuses().keys() <= {"cancelled", "succeeded", "running"}
    asked = Lease.objects.filter(status="running", stop_requested_at__isnull=False)
    assert asked.count() == Lease.objects.filter(status="running").count()
    cancelled = Audit.objects.filter(verb="cancel")
    assert cancelled.values("subject").distinct().count() == cancelled.count()
    assert cancelled.count() <= statuses().get("cancelled", 0)


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_many_are_cancelled_without_waiting_for_those_that_others_hold() -> None:
    """The recorder of a batch may hold a later lease, and come to an earlier one afterwards."""
    fill(4)
    noop.using(workers=3, priority=5).enqueue()
    first, second = claim(2)
    leases = [take(worker)[0].lease_id for worker in ("w1", "w2")]
    with another_connection() as own, own_transaction(own):
        held = lock_shared(own, leases[1:])
        change(own, "SELECT 1 FROM taskqueue_lease WHERE id = %s FOR UPDATE", (second.lease_id,))
        waiting = Task.objects.filter(status="ready").order_by("id")
        change(own, "SELECT 1 FROM taskqueue_task WHERE id = %s FOR UPDATE", (waiting[1].id,))
        with transaction.atomic():
            change(default_connection, "SET LOCAL lock_timeout = '5s'")
            assert tuple(cancel_many(TaskFilter(everything=True))) == (5, 2)
    assert len(held) == 1
    asked = Lease.objects.filter(stop_requested_at__isnull=False)
    assert list(asked.values_list("id", flat=True)) == [first.lease_id]
    assert tuple(cancel_many(TaskFilter(everything=True))) == (5, 4)
    assert Lease.objects.filter(stop_requested_at=None).count() == 0
    assert statuses() == {"cancelled": 2, "running": 3}


def test_nothing_that_fits_is_nothing_done() -> None:
    assert tuple(cancel_many(TaskFilter(name="nobody"))) == (0, 0)
