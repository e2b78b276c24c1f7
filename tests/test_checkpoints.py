"""A body stores a small state, which its next attempt reads."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client, override_settings

from taskqueue import Worker, control, current
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.checkpoints import latest_checkpoint, save_checkpoint
from taskqueue.engine.takeover import take_over
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import InvalidArguments, LeaseEnded, UnsupportedType
from taskqueue.models import Lease
from taskqueue.testing import Crash, run_due
from tests.admin.conftest import LogIn, log_in_as  # noqa: F401
from tests.engine.steps import claim_one, end, policy, promote, run_out
from tests.engine.test_apart import take
from tests.management.test_taskqueue import run_json
from tests.sample.tasks import log_in, noop
from tests.sample.worker_tasks import count_through_kills
from tests.testing.bodies import perform, perform_async, play, taken_back

pytestmark = pytest.mark.django_db


def counting(*endings: BaseException | None) -> Any:
    """A body that counts its attempts in a checkpoint, and ends each as it is told."""
    ends = iter(endings)

    def count() -> Any:
        context: Any = current()
        seen = context.checkpoint
        context.save_checkpoint({"count": (seen or {"count": 0})["count"] + 1})
        error = next(ends)
        if error is not None:
            raise error
        return seen

    return count


@pytest.fixture(autouse=True)
def _no_plays() -> Any:
    yield
    play.clear()


def take_over_now() -> None:
    take_over(connection, policy=policy(), grace=policy().park_limit * 0, tally=Tally())


def test_the_next_attempt_reads_what_the_last_one_stored() -> None:
    play["count"] = counting(ValueError(), Crash(), None)
    result = perform.enqueue("count")
    runs = run_due(backoff="skip")
    assert [run.outcome for run in runs] == ["failed", "lost", "succeeded"]
    result.refresh()
    assert result.return_value == {"count": 2}
    assert [each.checkpoint for each in result.history] == [{"count": n} for n in (1, 2, 3)]
    assert result.checkpoint == {"count": 3}


def test_an_async_body_stores_and_reads_it() -> None:
    async def body() -> Any:
        before = await current().acheckpoint()
        await current().asave_checkpoint([1, "ä"])
        return [before, await current().acheckpoint()]

    play["async"] = body
    result = perform_async.enqueue("async")
    run_due()
    result.refresh()
    assert result.return_value == [None, [1, "ä"]]


def test_it_survives_a_takeover_and_its_loser_stores_nothing_more() -> None:
    noop.using(crash_delay=0).enqueue()
    first = claim_one()
    save_checkpoint(connection, {"row": 7}, lease_id=first.lease_id)
    run_out(first)
    take_over_now()
    promote()
    second = claim_one(worker="w2")
    with pytest.raises(LeaseEnded):
        save_checkpoint(connection, {"row": 8}, lease_id=first.lease_id)
    assert latest_checkpoint(connection, lease_id=second.lease_id) == {"row": 7}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_it_survives_kills_of_the_process_that_stored_it() -> None:
    result = count_through_kills.enqueue(3)
    Worker(concurrency=1).run(until=result, timeout=120)
    assert (result.status, result.return_value) == ("succeeded", [1, 2, 3])


def test_it_is_part_of_the_transaction_of_the_body() -> None:
    noop.enqueue()
    lease_id = claim_one().lease_id
    with taken_back():
        save_checkpoint(connection, 1, lease_id=lease_id)
    assert latest_checkpoint(connection, lease_id=lease_id) is None
    with transaction.atomic():
        save_checkpoint(connection, 2, lease_id=lease_id)
    assert latest_checkpoint(connection, lease_id=lease_id) == 2


def test_none_lets_the_next_attempt_begin_anew() -> None:
    noop.enqueue()
    lease_id = claim_one().lease_id
    save_checkpoint(connection, 1, lease_id=lease_id)
    save_checkpoint(connection, None, lease_id=lease_id)
    assert latest_checkpoint(connection, lease_id=lease_id) is None


def test_a_retry_by_hand_goes_on_after_a_failure() -> None:
    play["count"] = counting(ValueError(), ValueError(), ValueError(), None)
    result = perform.enqueue("count")
    run_due(backoff="skip")
    control.retry(result.id, by="anna")
    run_due()
    result.refresh()
    assert result.return_value == {"count": 3}


def test_an_attempt_after_a_success_begins_anew() -> None:
    result = noop.enqueue()
    first = claim_one()
    save_checkpoint(connection, 1, lease_id=first.lease_id)
    end(first, OutcomeKind.SUCCEEDED)
    control.retry(result.id, by="anna")
    second = claim_one()
    assert second.task_id == first.task_id
    assert latest_checkpoint(connection, lease_id=second.lease_id) is None


@pytest.mark.django_db(transaction=True)
def test_each_worker_of_a_task_of_several_has_its_own() -> None:
    noop.using(workers=2).enqueue()
    [first], [other] = take("w1"), take("w2")
    save_checkpoint(connection, "of w1", lease_id=first.lease_id)
    assert latest_checkpoint(connection, lease_id=other.lease_id) is None
    assert latest_checkpoint(connection, lease_id=first.lease_id) == "of w1"


@pytest.mark.parametrize(
    ("state", "error"),
    [({1, 2}, UnsupportedType), (float("nan"), InvalidArguments), ("x" * 99, InvalidArguments)],
)
def test_checkpoints_that_are_too_large_or_no_json_are_refused(
    state: Any, error: type[Exception]
) -> None:
    noop.enqueue()
    lease_id = claim_one().lease_id
    with override_settings(TASKQUEUE={"MAX_CHECKPOINT": 100}), pytest.raises(error, match="check"):
        save_checkpoint(connection, state, lease_id=lease_id)
    assert latest_checkpoint(connection, lease_id=lease_id) is None


def test_every_face_shows_it(log_in_as: LogIn) -> None:  # noqa: F811
    result = noop.enqueue()
    claimed = claim_one()
    save_checkpoint(connection, {"row": "seventh"}, lease_id=claimed.lease_id)
    assert run_json("show", result.id)["latest_attempts"][0]["checkpoint"] == {"row": "seventh"}
    client: Client = log_in_as("superuser")
    attempts = client.get(f"/api/v1/tasks/{result.id}/attempts/").json()["results"]
    assert attempts[0]["checkpoint"] == {"row": "seventh"}
    lease = Lease.objects.get(id=claimed.lease_id)
    for page in (f"task/{result.id}", f"lease/{lease.pk}"):
        assert "seventh" in client.get(f"/admin/taskqueue/{page}/change/").text


def test_it_is_hidden_where_the_task_has_sensitive_arguments(log_in_as: LogIn) -> None:  # noqa: F811
    result = log_in.enqueue("anna", password="very secret")
    claimed = claim_one()
    save_checkpoint(connection, {"row": "seventh"}, lease_id=claimed.lease_id)
    assert run_json("show", result.id)["latest_attempts"][0]["checkpoint"] == "[redacted]"
    client: Client = log_in_as("superuser")
    for page in (f"task/{result.id}", f"lease/{claimed.lease_id}"):
        text = client.get(f"/admin/taskqueue/{page}/change/").text
        assert "seventh" not in text
        assert "[redacted]" in text
