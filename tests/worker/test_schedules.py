"""Workers and the schedules that their code declares."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F

from taskqueue import AfterEnd, Every, schedules
from taskqueue.models import Audit, Occurrence, Schedule, Task, Worker
from tests.conftest import Drain, StartWorker
from tests.sample import tasks
from tests.worker.shop import Shop
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow
QUICK = {"PING_INTERVAL": 0.2}

SECONDS = """
from taskqueue import Every, Scheduled, current, task


@task(schedule=Scheduled(Every(seconds=1), name="tick", args=[{number}]))
def tick(number):
    context = current()
    return [number, context.schedule, context.nominal_at.isoformat()]
"""
TWO = """
from taskqueue import Cron, Scheduled, task


@task(
    schedule=[
        Scheduled(Cron("0 6 * * 1-5", tz="Asia/Shanghai"), name="{name}", missed="skip"),
        Scheduled(Cron("0 6 * * *", tz="{zone}"), name="other"),
    ]
)
def report():
    pass
"""
NOTHING = """
from taskqueue import task


@task
def report():
    pass
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def succeeded(count: int) -> list[Task]:
    def enough() -> list[Task]:
        done = Task.objects.filter(schedule__isnull=False, status="succeeded")
        rows = list(done.order_by("nominal_at"))
        return rows if len(rows) >= count else []

    return wait_until(enough, 60, what=f"{count} runs")


def test_a_declared_schedule_runs_by_itself_and_its_body_knows_the_nominal_time(
    start_worker: StartWorker, shop: Shop, pool: str
) -> None:
    shop.deploy(SECONDS.format(number=7))
    start_worker("--pool", pool, env=shop.environment, settings=QUICK)

    runs = succeeded(3)

    moments = [run.nominal_at for run in runs]
    assert [run.return_value for run in runs] == [
        [7, "tick", moment.isoformat()] for moment in moments if moment
    ]
    assert all(moment is not None and moment.microsecond == 0 for moment in moments)

    def kept() -> Schedule | None:
        return Schedule.objects.filter(name="tick", last_status="succeeded").first()

    schedule = wait_until(kept, what="the last result")
    assert schedule.last_return_value[:2] == [7, "tick"]
    assert schedule.source == "code"
    assert Occurrence.objects.filter(status="ended", task_status="succeeded").count() >= 1


def test_declared_schedules_are_created_changed_put_to_rest_and_restored(
    drain: Drain, shop: Shop
) -> None:
    shop.deploy(TWO.format(name="weekdays", zone="UTC"))
    drain(env=shop.environment)
    first = {row.name: row for row in Schedule.objects.all()}
    assert sorted(first) == ["other", "weekdays"]
    assert first["weekdays"].missed == "skip"
    assert first["weekdays"].rule["tz"] == "Asia/Shanghai"

    schedules.pause("other", by="ada", reason="moving")
    shop.deploy(TWO.format(name="weekdays", zone="Europe/Berlin"))
    drain(env=shop.environment)
    other = Schedule.objects.get(name="other")
    assert other.rule["tz"] == "Europe/Berlin"
    assert other.paused_by == "ada"
    assert other.next_at != first["other"].next_at

    shop.deploy(NOTHING)
    drain(env=shop.environment)
    assert Schedule.objects.filter(removed_at__isnull=False).count() == 2

    shop.deploy(TWO.format(name="weekdays", zone="UTC"))
    drain(env=shop.environment)
    assert not Schedule.objects.filter(removed_at__isnull=False).exists()
    verbs = Audit.objects.filter(subject="other").order_by("id").values_list("verb", flat=True)
    assert list(verbs) == [
        "create", "pause", "edit", "remove", "edit",
    ]  # fmt: skip


def test_a_schedule_rests_only_when_the_last_worker_that_declares_it_is_gone(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = Shop(tmp_path / "old"), Shop(tmp_path / "new")
    old.deploy(TWO.format(name="weekdays", zone="UTC"))
    new.deploy(NOTHING)
    first = start_worker("--name", "first", env=old.environment, settings=QUICK)
    wait_until(lambda: declared("first"), what="the first worker's declarations")

    start_worker("--name", "second", env=new.environment, settings=QUICK)
    wait_until(lambda: declared("second") == [], what="the second worker's declarations")
    assert not Schedule.objects.filter(removed_at__isnull=False).exists()

    first.terminate()
    assert first.wait() == 0
    wait_until(
        lambda: Schedule.objects.filter(removed_at__isnull=False).count() == 2,
        40,
        what="the schedules to rest",
    )


def declared(worker: str) -> list[str] | None:
    names = Worker.objects.filter(name=worker).values_list("schedules", flat=True).first()
    return names


def test_new_code_that_is_reloaded_declares_its_schedules(
    start_worker: StartWorker, shop: Shop
) -> None:
    shop.deploy(SECONDS.format(number=1))
    start_worker("--reload", env=shop.environment, settings=QUICK)
    succeeded(1)

    shop.deploy(SECONDS.format(number=2))

    wait_until(
        lambda: Task.objects.filter(status="succeeded", args=[2]).exists(), 60, what="new code"
    )


def test_a_declaration_that_cannot_work_is_left_out_and_said_and_the_others_run(
    start_worker: StartWorker, shop: Shop
) -> None:
    shop.deploy(SECONDS.format(number=1) + TWO.format(name="weekdays", zone="Europe/Berlim"))
    worker = start_worker(env=shop.environment, settings=QUICK)

    succeeded(1)

    wait_until(lambda: "Did you mean 'Europe/Berlin'?" in worker.log(), what="a word on it")
    assert set(Schedule.objects.values_list("name", flat=True)) == {"tick", "weekdays"}


def test_an_interval_after_the_end_counts_from_the_end_of_the_last_run(
    start_worker: StartWorker,
) -> None:
    schedules.create("rest", tasks.sleep, AfterEnd(seconds=1), args=[0.5])
    start_worker("--concurrency", "2", settings=QUICK)

    runs = succeeded(3)

    gaps = [
        later.nominal_at - earlier.finished_at
        for earlier, later in itertools.pairwise(runs)
        if later.nominal_at and earlier.finished_at
    ]
    assert gaps[:2] == [timedelta(seconds=1)] * 2


def test_runs_that_wait_for_the_one_before_begin_as_soon_as_that_ends(
    start_worker: StartWorker,
) -> None:
    """Not with the next look of the worker, which is far away."""
    schedules.create("queue", tasks.sleep, Every(days=400), args=[0.2], overlap="queue_all")
    for _ in range(3):
        schedules.run_now("queue")
    assert Occurrence.objects.filter(status="waiting").count() == 2
    far = {**QUICK, "TAKEOVER_INTERVAL": 120}
    start_worker("--concurrency", "2", "--poll-interval", "120", settings=far)

    runs = succeeded(3)

    for earlier, later in itertools.pairwise(runs):
        assert earlier.finished_at
        assert later.started_at
        assert later.started_at >= earlier.finished_at
    assert Occurrence.objects.filter(status="skipped").count() == 0


def test_a_schedule_that_fails_too_often_in_a_row_pauses_itself(start_worker: StartWorker) -> None:
    schedules.create("doomed", tasks.fail, Every(seconds=1), pause_after_failures=2)
    start_worker(settings=QUICK)

    def paused() -> Schedule | None:
        return Schedule.objects.filter(paused_at__isnull=False).first()

    schedule = wait_until(paused, 60, what="the pause")

    assert schedule.pause_reason == "2 runs failed in a row."
    assert schedule.last_error == "builtins.ValueError: it failed"
    assert Task.objects.filter(name=tasks.fail.name).count() == 2

    pausing = Occurrence.objects.filter(reason="Paused: 2 runs failed in a row.")
    wait_until(pausing.exists, what="a run that is skipped for the pause")


def test_a_drain_does_not_wait_for_times_to_come(drain: Drain) -> None:
    schedules.create("later", tasks.noop, Every(days=400))  # Full hours may come meanwhile.

    drain()

    assert not Task.objects.exists()


def test_a_drain_ends_though_a_schedule_goes_on(drain: Drain) -> None:
    schedules.create(
        "busy", tasks.sleep, Every(seconds=1), args=[1.5], overlap="queue_all", missed="all"
    )
    earlier = F("served_until") - timedelta(seconds=3)
    Schedule.objects.update(served_until=earlier, next_at=earlier + timedelta(seconds=1))

    drain("--concurrency", "2", timeout=60)

    assert Task.objects.filter(status="succeeded").count() >= 3
    assert not Task.objects.exclude(status="succeeded").exists()
