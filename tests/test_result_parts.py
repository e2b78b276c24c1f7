"""A body writes its result in parts, which are read while it runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client, override_settings

from taskqueue import control, current
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.result_parts import keep_parts, write_part
from taskqueue.exceptions import InvalidArguments, LeaseEnded, TaskQueueError, UnsupportedType
from taskqueue.models import ResultPart, Task
from taskqueue.testing import Crash, run_due
from tests.admin.conftest import LogIn, log_in_as  # noqa: F401
from tests.engine.steps import claim_one, end, past, promote, run_at_once, run_out
from tests.engine.test_apart import take
from tests.management.test_taskqueue import run_json
from tests.sample.tasks import noop
from tests.test_checkpoints import take_over_now
from tests.testing.bodies import perform, perform_async, play, taken_back

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_plays() -> Any:
    yield
    play.clear()


def test_parts_are_read_while_the_body_runs_and_after_it() -> None:
    seen: list[Any] = []

    def body() -> str:
        context: Any = current()
        for number in range(3):
            context.write_result({"row": number})
            seen.append(result.parts)
        return "done"

    play["parts"] = body
    result = perform.enqueue("parts")
    result.attempts = 1
    run_due()
    assert seen == [[{"row": number} for number in range(last + 1)] for last in range(3)]
    result.refresh()
    assert (result.return_value, result.parts) == ("done", seen[-1])
    assert (result.parts_of(1), result.parts_of(2)) == (seen[-1], [])


def test_an_async_body_writes_them_too() -> None:
    async def body() -> None:
        assert await current().akeep_result() == 0
        await current().awrite_result([1, "ä", None, 1.5])
        await current().awrite_result(None)

    play["async"] = body
    result = perform_async.enqueue("async")
    run_due()
    result.refresh()
    assert result.parts == [[1, "ä", None, 1.5], None]


def test_each_attempt_begins_anew_unless_it_keeps_what_was_written() -> None:
    def body() -> int:
        context: Any = current()
        kept = context.keep_result() if context.attempt > 2 else 0
        context.write_result(context.attempt)
        if context.attempt == 1:
            raise ValueError
        if context.attempt == 2:
            context.write_result("two")
            raise Crash
        return kept

    play["keep"] = body
    result = perform.enqueue("keep")
    run_due(backoff="skip")
    result.refresh()
    assert (result.return_value, result.parts) == (2, [2, "two", 3])
    assert (result.parts_of(1), result.parts_of(2)) == ([1], [])


def test_a_loser_of_its_lease_writes_nothing_more() -> None:
    result = noop.using(crash_delay=0).enqueue()
    first = claim_one()
    write_part(connection, "first", lease_id=first.lease_id)
    run_out(first)
    take_over_now()
    result.refresh()
    assert result.parts == ["first"]
    promote()
    second = claim_one(worker="w2")
    with pytest.raises(LeaseEnded):
        write_part(connection, "late", lease_id=first.lease_id)
    with pytest.raises(LeaseEnded):
        keep_parts(connection, lease_id=first.lease_id)
    result.refresh()
    assert result.parts == []
    assert keep_parts(connection, lease_id=second.lease_id) == 1
    write_part(connection, "second", lease_id=second.lease_id)
    assert result.parts == ["first", "second"]
    with pytest.raises(TaskQueueError, match="before the first write_result"):
        keep_parts(connection, lease_id=second.lease_id)


def test_a_success_ends_what_was_written_before_it() -> None:
    result = noop.enqueue()
    first = claim_one()
    write_part(connection, 1, lease_id=first.lease_id)
    end(first, OutcomeKind.SUCCEEDED)
    control.retry(result.id, by="anna")
    assert keep_parts(connection, lease_id=claim_one().lease_id) == 0


@pytest.mark.django_db(transaction=True)
def test_each_worker_of_a_task_of_several_has_its_own() -> None:
    result = noop.using(workers=2).enqueue()
    [first], [other] = take("w1"), take("w2")
    write_part(connection, "of w1", lease_id=first.lease_id)
    assert keep_parts(connection, lease_id=other.lease_id) == 0
    write_part(connection, "of w2", lease_id=other.lease_id)
    assert (result.parts_of(1), result.parts_of(2)) == (["of w1"], ["of w2"])


def test_they_are_part_of_the_transaction_of_the_body() -> None:
    result = noop.enqueue()
    lease_id = claim_one().lease_id
    with taken_back():
        write_part(connection, 1, lease_id=lease_id)
    with transaction.atomic():
        write_part(connection, 2, lease_id=lease_id)
    assert result.parts_of(1) == [2]


@pytest.mark.django_db(transaction=True)
def test_threads_of_one_body_lose_no_part() -> None:
    result = noop.enqueue()
    lease_id = claim_one().lease_id

    def write(start: int) -> Any:
        from django.db import connection as own

        return lambda: [write_part(own, start + n, lease_id=lease_id) for n in range(5)]

    run_at_once([write(0), write(10), write(20)])
    assert sorted(result.parts_of(1)) == sorted([*range(5), *range(10, 15), *range(20, 25)])
    places = ResultPart.objects.order_by("place").values_list("place", flat=True)
    assert list(places) == list(range(15))


@pytest.mark.parametrize(
    ("part", "error"),
    [({1, 2}, UnsupportedType), (float("nan"), InvalidArguments), ("x" * 99, InvalidArguments)],
)
def test_parts_that_are_too_large_or_no_json_are_refused(part: Any, error: type[Exception]) -> None:
    result = noop.enqueue()
    lease_id = claim_one().lease_id
    with override_settings(TASKQUEUE={"MAX_RESULT": 100}):
        write_part(connection, "x" * 40, lease_id=lease_id)
        with pytest.raises(error):
            write_part(connection, part, lease_id=lease_id)
        with pytest.raises(InvalidArguments, match="at most 100 bytes together, not 104"):
            write_part(connection, "x" * 60, lease_id=lease_id)
        write_part(connection, "x" * 56, lease_id=lease_id)
    assert len(result.parts_of(1)) == 2


def test_they_go_with_their_task() -> None:
    from taskqueue.engine.dialect import dialect_for

    result = noop.enqueue()
    claimed = claim_one()
    write_part(connection, 1, lease_id=claimed.lease_id)
    end(claimed, OutcomeKind.SUCCEEDED)
    other = noop.enqueue()
    second = claim_one()
    write_part(connection, 2, lease_id=second.lease_id)
    Task.objects.filter(id=result.id).update(prune_after=past())
    assert dialect_for(connection).prune(connection, limit=10) == 1
    assert [part.value for part in ResultPart.objects.all()] == [2]
    end(second, OutcomeKind.SUCCEEDED)
    control.delete(other.id)
    assert not ResultPart.objects.exists()


def test_every_face_shows_them(log_in_as: LogIn) -> None:  # noqa: F811
    result = noop.enqueue()
    lease_id = claim_one().lease_id
    for part in ("first", {"row": "seventh"}):
        write_part(connection, part, lease_id=lease_id)
    shown = run_json("show", result.id)["result_parts"]
    assert [part["value"] for part in shown] == ["first", {"row": "seventh"}]
    client: Client = log_in_as("superuser")
    assert "seventh" in client.get(f"/admin/taskqueue/task/{result.id}/change/").text
    path = f"/api/v1/tasks/{result.id}/parts/"
    page = client.get(path, {"limit": 1}).json()
    assert [part["value"] for part in page["results"]] == ["first"]
    assert (page["attempt"], page["after"], page["has_more"]) == (1, 0, True)
    page = client.get(path, {"after": page["after"], "attempt": 1}).json()
    assert [(part["place"], part["value"]) for part in page["results"]] == [(1, {"row": "seventh"})]
    assert (page["status"], page["is_complete"]) == ("running", False)
    assert client.get(path, {"attempt": 2}).json()["results"] == []


def test_a_client_follows_the_parts_of_a_task_that_has_not_started(
    log_in_as: LogIn,  # noqa: F811
) -> None:
    result = noop.enqueue()
    client: Client = log_in_as("superuser")
    path = f"/api/v1/tasks/{result.id}/parts/"
    first = client.get(path).json()
    following = {"attempt": first["attempt"], "after": first["after"]}
    assert client.get(path, following).json()["results"] == []
    write_part(connection, "first", lease_id=claim_one().lease_id)
    page = client.get(path, following).json()
    assert [part["value"] for part in page["results"]] == ["first"]
    assert (page["attempt"], page["after"]) == (1, 0)


def test_a_part_that_another_thread_has_just_written_refuses_the_earlier_ones() -> None:
    result = noop.using(max_attempts=2).enqueue()
    first = claim_one()
    write_part(connection, "first", lease_id=first.lease_id)
    end(first, OutcomeKind.FAILED)
    Task.objects.update(status="ready")
    second = claim_one()
    # As a part that was committed after the look at their size.
    ResultPart.objects.create(
        task_id=result.id, attempt=2, place=0, value="second", size_so_far=0, written_at=past()
    )
    with pytest.raises(TaskQueueError, match="comes before the first write_result"):
        keep_parts(connection, lease_id=second.lease_id)
    assert list(result.parts_of(2)) == ["second"]
