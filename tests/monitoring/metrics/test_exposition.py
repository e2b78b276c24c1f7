"""The page of metrics says what stands in the database, in a bounded number of samples."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from taskqueue import control
from taskqueue.core.histogram import upper_bound
from taskqueue.engine import totals
from taskqueue.models import Queue, Rollup, Schedule, Task, Total
from taskqueue.monitoring import counts
from taskqueue.monitoring.metrics import collector, exposition
from taskqueue.monitoring.notice_texts import TEXTS
from tests.conftest import require_tool
from tests.monitoring.metrics.scraping import scrape, total, value
from tests.monitoring.rows import HOUR, ago, make_rollup, make_running, make_task, make_worker
from tests.monitoring.test_health import elsewhere

pytestmark = pytest.mark.django_db

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def fill() -> None:
    """A little of all."""
    make_worker("w1", queues={"mail": 1})
    make_worker("gone", seen_at=ago(HOUR))
    Queue.objects.create(name="mail", paused_at=timezone.now())
    for status in ("ready", "ready", "scheduled", "retrying", "blocked"):
        make_task(status, queue_name="mail", run_after=ago(HOUR))
    make_task(queue_name="mail", route=1, workers=2)
    make_running("w1", task=make_task("running", queue_name="web"))
    make_rollup(ago(timedelta(seconds=5)), queue_name="mail", succeeded=2, tasks_succeeded=2,
                run=[1.0, 3.0], run_seconds=4.0, wait=[0.1])  # fmt: skip
    Rollup.objects.update(resolution=0)
    Total.objects.create(kind="queue", label="mail", enqueued=7, succeeded=3, lost=1)
    Total.objects.create(kind="name", label="shop.tasks.send", enqueued=7, succeeded=3, lost=1)


def test_notices_are_counted_by_kind_also_those_of_which_there_is_none() -> None:
    fill()
    samples = scrape()
    assert value(samples, "notices", kind="paused_with_waiting", level="warning") == 1
    assert value(samples, "notices", kind="failure_jump", level="warning") == 0


def test_notices_have_the_same_labels_whatever_is_found() -> None:
    before = scrape()
    assert value(before, "notices", kind="all_paused", level="error") == 0
    control.pause_all()
    after = scrape()
    assert value(after, "notices", kind="all_paused", level="error") == 1
    for samples in (before, after):
        labels = {labels for name, labels in samples if name == "taskqueue_notices"}
        assert labels == {
            (("kind", kind), ("level", level)) for kind in TEXTS for level in ("error", "warning")
        }


def test_tasks_stand_by_queue_and_status() -> None:
    fill()
    samples = scrape()
    found = {
        status: value(samples, "tasks", queue="mail", status=status)
        for status in ("blocked", "scheduled", "ready", "running", "retrying")
    }
    assert found == {"blocked": 1, "scheduled": 1, "ready": 3, "running": 0, "retrying": 1}
    assert value(samples, "tasks", queue="web", status="running") == 1
    assert total(samples, "tasks_capped") == 0
    assert value(samples, "queue_latency_seconds", queue="mail") == pytest.approx(3600, abs=60)
    assert value(samples, "queue_latency_seconds", queue="web") == 0
    assert value(samples, "queue_paused", queue="mail") == 1
    assert value(samples, "queue_workers", queue="mail") == 1
    assert value(samples, "queue_workers", queue="web") == 0


def test_counters_are_totals_and_what_has_not_been_added_to_them() -> None:
    fill()
    samples = scrape()
    assert value(samples, "tasks_enqueued_total", queue="mail") == 7
    assert value(samples, "attempts_total", queue="mail", outcome="succeeded") == 5
    assert value(samples, "tasks_finished_total", queue="mail", status="succeeded") == 2
    assert value(samples, "leases_lost_total", queue="mail") == 1
    name = "shop.tasks.send"
    assert value(samples, "name_attempts_total", name=name, outcome="succeeded") == 5
    assert value(samples, "name_run_seconds_count", name=name) == 2
    assert value(samples, "name_run_seconds_sum", name=name) == 4


def test_durations_are_cumulative_and_exact_at_each_bound() -> None:
    fill()
    samples = scrape()
    found = [
        (float(dict(labels)["le"]), number)
        for (name, labels), number in samples.items()
        if name == "taskqueue_attempt_run_seconds_bucket"
    ]
    bounds, numbers = zip(*sorted(found), strict=True)
    assert bounds[0] == upper_bound(-40)
    assert bounds[-1] == float("inf")
    assert dict(found)[1.0] == 1
    assert dict(found)[2.0] == 1
    assert dict(found)[4.0] == 2 == numbers[-1]
    assert list(numbers) == sorted(numbers)
    assert value(samples, "attempt_run_seconds_count", queue="mail") == 2
    assert value(samples, "attempt_run_seconds_sum", queue="mail") == 4


def test_workers_stand_by_state_and_only_the_living_have_slots() -> None:
    fill()
    samples = scrape()
    assert value(samples, "workers", state="active") == 1
    assert value(samples, "workers", state="lost") == 1
    assert value(samples, "workers", state="draining") == 0
    assert (value(samples, "slots"), value(samples, "slots_busy")) == (4, 1)


def make_schedule(name: str, **fields: object) -> None:
    now = timezone.now()
    values = {"task_name": "x", "rule": {}, "request": {}, "served_until": now, **fields}
    Schedule.objects.create(name=name, **values)


def test_schedules_tell_when_they_ran_and_when_they_will() -> None:
    last, upcoming = ago(HOUR), timezone.now() + HOUR
    make_schedule("nightly", last_nominal_at=last, next_at=upcoming)
    make_schedule("resting", next_at=upcoming, paused_at=last)
    samples = scrape()
    name = "schedule_{}_run_timestamp_seconds"
    ran = value(samples, name.format("last"), schedule="nightly")
    assert ran == pytest.approx(last.timestamp())
    runs = value(samples, name.format("next"), schedule="nightly")
    assert runs == pytest.approx(upcoming.timestamp())
    assert total(samples, name.format("next")) == runs, "one that rests has no next run"


def test_a_count_that_reached_its_cap_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.monitoring.read_models.queue.LEAST_CAP", 2)
    monkeypatch.setattr("taskqueue.monitoring.read_models.queue.CAP", 2)
    assert counts.CAP > 2
    for status in ("ready", "scheduled"):
        for _ in range(4):
            make_task(status, queue_name="mail")
    make_task(queue_name="web")
    samples = scrape()
    assert value(samples, "tasks", queue="mail", status="ready") == 3
    assert value(samples, "tasks_capped", queue="mail", status="ready") == 1
    assert value(samples, "tasks_capped", queue="web", status="ready") == 0
    assert value(samples, "tasks_capped", queue="web", status="scheduled") == 1, "one limit for all"
    assert value(samples, "tasks_capped", queue="web", status="retrying") == 0


def test_no_label_is_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 3)
    monkeypatch.setattr("taskqueue.monitoring.metrics.figures.MOST_LABELS", 3)
    for number in range(8):
        make_task(queue_name=f"q{number}")
        Queue.objects.create(name=f"idle{number}")
        make_rollup(ago(HOUR), queue_name=f"q{number}", name=f"n{number}", succeeded=1)
        make_schedule(f"s{number}", next_at=timezone.now() + number * HOUR)
    Rollup.objects.update(resolution=0)
    samples = scrape()
    found: dict[str, set[str]] = {}
    for _, labels in samples:
        for label, said in labels:
            found.setdefault(label, set()).add(said)
    for label in ("queue", "name", "schedule"):
        assert len(found[label]) == 4, label
        assert "…other" in found[label]
    assert total(samples, "tasks", status="ready") == 8
    assert total(samples, "attempts_total") == 8


def test_queues_that_anybody_may_choose_do_not_hide_those_that_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 4)
    for number in range(8):
        name = f"junk{number}"
        Total.objects.create(kind="queue", label=name, enqueued=2 if number < 4 else 0)
        make_task(queue_name=name)
    make_worker(queues={"served": 1})
    Queue.objects.create(name="paused", paused_at=timezone.now())
    for _ in range(2):
        make_task(queue_name="waiting")
    samples = scrape()
    found = {
        dict(labels)["queue"]: number
        for (name, labels), number in samples.items()
        if name == "taskqueue_tasks" and dict(labels)["status"] == "ready"
    }
    assert found == {"served": 0, "paused": 0, "waiting": 2, "junk0": 1, "…other": 7}


def test_a_task_whose_worker_is_away_has_an_age_of_its_own() -> None:
    fill()
    make_task(queue_name="web", route=1, worker_names=["gone"], run_after=ago(HOUR))
    samples = scrape()
    assert value(samples, "queue_latency_seconds", queue="web") == 0
    away = value(samples, "queue_absent_latency_seconds", queue="web")
    assert away == pytest.approx(3600, abs=60)
    assert value(samples, "tasks", queue="web", status="ready") == 1


ODD = 'a"b\\c\nd\t{e}=ü…\u2028'


def test_odd_names_are_read_back_as_they_are() -> None:
    make_task(queue_name=ODD)
    assert value(scrape(), "tasks", queue=ODD, status="ready") == 1
    families = text_string_to_metric_families(exposition(OPENMETRICS)[0].decode())
    queues = {sample.labels.get("queue") for family in families for sample in family.samples}
    assert ODD in queues


def test_the_content_type_is_what_was_asked_for() -> None:
    assert exposition()[1].startswith("text/plain; version=")
    body, content_type = exposition(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_the_number_of_statements_does_not_grow_with_what_is_there() -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            scrape()
        return len(queries)

    few = statements()
    fill()
    for number in range(30):
        make_task(queue_name=f"q{number}")
    assert statements() == few <= 16


def test_promtool_has_nothing_to_object_to() -> None:
    promtool = require_tool("promtool")
    fill()
    make_schedule("nightly", last_nominal_at=ago(HOUR), next_at=timezone.now())
    found = subprocess.run(
        [promtool, "check", "metrics"], input=exposition()[0], capture_output=True, timeout=120
    )
    assert (found.returncode, found.stdout + found.stderr) == (0, b"")


def test_a_database_that_does_not_answer_is_reported() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE taskqueue_total RENAME TO elsewhere")
    samples = scrape()
    assert {name for name, _ in samples} == {"taskqueue_up", "taskqueue_scrape_duration_seconds"}
    assert value(samples, "up") == 0


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_database_that_stays_silent_is_told_in_time_and_kept_one_connection_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection.close()
    monkeypatch.setattr(collector, "LONGEST", 0.2)
    monkeypatch.setattr("taskqueue.engine.connections.CONNECT_TIMEOUT", 60)
    with socket.create_server(("127.0.0.1", 0)) as silent, elsewhere(silent.getsockname()[1]):
        assert value(scrape(), "up") == 0
        asked = collector.shared_scrape.latest
        assert value(scrape(), "up") == 0
        assert collector.shared_scrape.latest is asked
    assert asked is not None
    asked._thread.join(60)
    monkeypatch.undo()
    assert value(scrape(), "up") == 1
    assert connection.connection is None, "It has a connection of its own."


def test_without_prometheus_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ImproperlyConfigured, match=r"django-taskqueue\[metrics\]"):
        exposition()


def test_the_page_is_written_where_nothing_was_ever_done() -> None:
    assert not Task.objects.exists()
    samples = scrape()
    assert value(samples, "up") == 1
    assert value(samples, "workers", state="active") == 0
    assert total(samples, "table_size_bytes") > 0
