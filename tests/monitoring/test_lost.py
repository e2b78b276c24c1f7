"""Tasks that lost workers hold are named, with what frees them."""

from __future__ import annotations

import pytest
from django.utils import timezone

from taskqueue.models import Worker
from taskqueue.monitoring.doctor import examine
from taskqueue.monitoring.notices import Notice, notices
from taskqueue.monitoring.why import why
from tests.engine.lost_workers import held_by_lost, worker_row
from tests.engine.steps import claim_one, future, run_out, task_of
from tests.management.test_taskqueue import run
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
FREED = "To end it at once, stop, cancel or retry the task"


def lost_ones() -> list[Notice]:
    return [notice for notice in notices() if notice.code == "lost_holds"]


def test_why_names_the_lost_worker_its_lease_and_what_ends_it() -> None:
    result, _ = held_by_lost()
    Worker.objects.update(seen_at=timezone.now(), status="lost")
    reasons = why(task_of(result))
    assert [reason.code for reason in reasons] == ["claimed", "worker_lost", "lost_holds"]
    assert FREED in reasons[-1].sentence
    assert FREED in run("why", result.id)


def test_why_tells_that_another_process_has_the_name_of_the_worker() -> None:
    result, _ = held_by_lost()
    Worker.objects.update(started_at=future(), seen_at=future(), lease_seconds=30)
    codes = [reason.code for reason in why(task_of(result))]
    assert codes == ["claimed", "worker_replaced", "lost_holds"]


def test_a_notice_counts_the_tasks_and_names_one() -> None:
    results = [held_by_lost()[0] for _ in range(3)]
    (notice,) = lost_ones()
    assert (notice.level, notice.count) == ("error", 3)
    assert notice.subject in {str(result.id) for result in results}


def test_a_lease_that_has_run_out_or_whose_worker_lives_is_none_of_them() -> None:
    _, claimed = held_by_lost()
    run_out(claimed)
    noop.enqueue()
    worker_row("w2")
    claim_one(worker="w2")
    assert lost_ones() == []


def test_the_doctor_names_the_task_and_the_remedy() -> None:
    result, _ = held_by_lost()
    (finding,) = [each for each in examine() if each.subject == str(result.id)]
    assert "lost workers hold" in finding.seen
    assert f"stop {result.id} --yes" in finding.remedy
