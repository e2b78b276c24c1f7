"""The command line ends what a lost worker holds once somebody says --yes."""

from __future__ import annotations

import json

import pytest

from tests.engine.lost_workers import held_by_lost
from tests.engine.steps import task_of
from tests.management.test_taskqueue import refused, run

pytestmark = pytest.mark.django_db
VERBS = [("stop", "cancelled"), ("cancel", "cancelled"), ("retry", "ready")]


@pytest.mark.parametrize(("verb", "status"), VERBS)
def test_it_is_told_that_the_body_may_still_run_before_anything_is_done(
    verb: str, status: str
) -> None:
    result, _ = held_by_lost()
    code, said = refused(verb, result.id)
    assert code == 1
    for words in ("held by a lost worker: 'w1'", "Its code may still be running", "--yes"):
        assert words in said
    assert task_of(result).status == "running"
    assert "(its worker was lost)" in run(verb, result.id, "--yes")
    assert task_of(result).status == status


def test_json_says_that_the_worker_was_lost() -> None:
    result, _ = held_by_lost()
    told = json.loads(run("stop", result.id, "--yes", "--format", "json"))
    assert told["tasks"][0]["worker_lost"] is True


def test_of_many_it_is_told_how_many_lost_workers_hold() -> None:
    result, _ = held_by_lost()
    for flags in (("--status", "running"), ("--status", "running", "--dry-run")):
        said = run("cancel", *flags) if "--dry-run" in flags else refused("cancel", *flags)[1]
        assert "1 of them are held by lost workers" in said
    run("cancel", "--status", "running", "--yes")
    assert task_of(result).status == "cancelled"
