"""`manage.py taskqueue limits`, `queues limit`, `queues fairness` and `release`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from taskqueue import Fair, Sequence
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Audit, Limit, Queue
from tests.engine.steps import end
from tests.engine.test_limits import take, two_a_key
from tests.management.test_taskqueue import refused, run
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db
NAME = "tests.sample.tasks.add:a"
# No definition of another test names such a queue.
UNKNOWN = "unheard-of"


def document(*arguments: str) -> Any:
    """Return its output as JSON."""
    return json.loads(run(*arguments, "--format", "json"))


@pytest.fixture
def used() -> None:
    """A limit under which three run and two wait."""
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 1, 2)])
    take()
    take()


def test_limits_are_listed_and_shown_with_their_keys(used: None) -> None:
    assert NAME in run("limits")
    [limit] = document("limits", "list")
    assert (limit["concurrency"], limit["running"], limit["waiting"]) == (2, 3, 2)
    shown = document("limits", "show", NAME)
    assert [(key["key"], key["waiting"]) for key in shown["keys"]] == [("1", 2), ("2", 0)]
    text = run("limits", "show", NAME)
    assert re.search(r"^key +running +waiting +oldest +used$", text, re.MULTILINE)
    assert re.search(r"^1 +2 +2 +\d+(\.\d)? (ms|s)$", text, re.MULTILINE)
    assert f"Did you mean {NAME!r}?" in refused("limits", "show", NAME + "a")[1]


def test_other_numbers_are_set_and_reset(used: None) -> None:
    assert document("limits", "set", NAME, "--concurrency", "0")["concurrency"] == 0
    assert Limit.objects.get().concurrency_override == 0
    assert document("limits", "reset", NAME)["is_overridden"] is False
    assert "is as the code declares it" in refused("limits", "reset", NAME)[1]
    assert Audit.objects.filter(noun="limit").count() == 2


def test_a_queue_is_limited_and_its_limit_lifted(capsys: pytest.CaptureFixture[str]) -> None:
    limited = document("queues", "limit", UNKNOWN, "--concurrency", "20", "--rate", "100/m")
    assert limited["limit"] == {"concurrency": 20, "rate": "100/m"}
    assert "concurrency 20, rate 100/m" in run("queues")
    code, told = refused("queues", "limit", UNKNOWN)
    assert (code, "--lift" in told) == (2, True)
    run("queues", "limit", UNKNOWN, "--lift")
    assert f"names the queue {UNKNOWN!r}" in capsys.readouterr().err
    assert Queue.objects.get().limiter_id is None


def test_the_shares_of_tenants_are_shown() -> None:
    fair = add.using(fair=Fair("a"))
    fair.enqueue_many([((tenant,), {}) for tenant in (1, 2) for _ in range(3)])
    take(4)
    told = document("queues", "fairness", "default")
    assert [(each["starts"], each["waiting"]) for each in told["tenants"]] == [(2, 1), (2, 1)]
    assert told["index"] == pytest.approx(1.0)
    assert "wait_p95" in run("queues", "fairness", "default")


def test_a_halted_sequence_is_released() -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed = ordered.enqueue(1)
    ordered.enqueue(1, 2)
    end(take()[0], OutcomeKind.FAILED)
    take()
    assert "sequence" in run("show", str(failed.id))
    run("release", str(failed.id))
    assert "no sequence that is halted" in refused("release", str(failed.id))[1]
    assert len(take()) == 1
