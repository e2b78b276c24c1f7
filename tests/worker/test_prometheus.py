"""A real Prometheus scrapes a site and a worker; its figures equal those of the database."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import pytest
from pytest_django.live_server_helper import LiveServer

from project.postgres import _free_port
from taskqueue.models import Lease, Task
from tests.conftest import StartWorker, require_tool
from tests.sample.tasks import add, fail
from tests.sample.worker_tasks import crash_until, sleep_unless_stopped
from tests.worker_process import WorkerProcess, children_of, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TOKEN = "for-metrics-alone"
SHORT = {"LEASE_DURATION": 2, "PING_INTERVAL": 0.5, "TAKEOVER_INTERVAL": 0.5}
QUICK = {"PING_INTERVAL": 0.5, "TAKEOVER_INTERVAL": 0.5}
DIRECT = build_opener(ProxyHandler({}))
Query = Callable[[str], dict[tuple[str, ...], float]]


@pytest.fixture
def run_prometheus(tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], Query]]:
    """Start Prometheus on a configuration; what asks it for the values of an expression."""
    program = require_tool("prometheus")
    processes: list[subprocess.Popen[bytes]] = []

    def run(configuration: dict[str, Any]) -> Query:
        port = _free_port()  # One that the kernel hands to nobody before it is bound.
        path = tmp_path / "prometheus.yml"
        path.write_text(json.dumps(configuration))  # JSON is YAML too.
        with (tmp_path / "prometheus.log").open("wb") as log:
            command = [
                program, f"--config.file={path}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ]  # fmt: skip
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))

        def query(expression: str) -> dict[tuple[str, ...], float]:
            address = f"http://127.0.0.1:{port}/api/v1/query?query={quote(expression)}"
            try:
                with DIRECT.open(address, timeout=10) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:
                return {}  # It comes up, or is late.
            return {
                tuple(said for _, said in sorted(each["metric"].items())): float(each["value"][1])
                for each in found
            }

        return query

    yield run
    for process in processes:
        process.kill()
        process.wait(timeout=60)
    print((tmp_path / "prometheus.log").read_text() if processes else "")


def job(name: str, target: str, **more: Any) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [{"targets": [target]}], **more}


def nonzero(found: dict[tuple[str, ...], float]) -> dict[str, int]:
    return {labels[0]: int(number) for labels, number in found.items() if number}


def test_figures_of_prometheus_equal_the_database_after_kills(
    start_worker: StartWorker,
    live_server: LiveServer,
    settings: Any,
    run_prometheus: Callable[[dict[str, Any]], Query],
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "METRICS_TOKEN": TOKEN, "CRASH_DELAY": 0}
    # A worker that is killed in the midst of its work.
    add.enqueue_many([((number, 1), {}) for number in range(40)])
    for _ in range(3):
        fail.enqueue()
    endless = [sleep_unless_stopped.enqueue(60) for _ in range(2)]
    first = start_worker("--concurrency", "2", settings=SHORT)
    wait_until(lambda: Lease.objects.filter(status="running", task_id=endless[0].id).exists(), 60)
    first.kill()
    for result in endless:
        result.cancel()
    # Its successor, whose children are killed too, while Prometheus looks on.
    worker = start_worker("--concurrency", "2", "--metrics-port", "0", settings=QUICK)
    found = wait_until(lambda: re.search(r"Port open address=(\S+)", worker.log()))
    site = job("site", live_server.url.removeprefix("http://"), metrics_path="/api/v1/metrics")
    site["authorization"] = {"credentials": TOKEN}
    query = run_prometheus(
        {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [site, job("worker", found[1])],
        }
    )
    wait_until(lambda: sum(query("up").values()) == 2, 60, what="both targets are up")
    for _ in range(20):
        add.using(queue_name="mail").enqueue(1, 2)
    # Its crash is over before others' children are killed: each is counted once.
    assert crash_until.enqueue(2).wait(60).attempts == 2
    victim = sleep_unless_stopped.enqueue(60)
    killed = kill_children(worker, of=victim.id)
    victim.cancel()
    add.using(run_after=3600).enqueue(1, 2).cancel()
    wait_until(lambda: not Task.objects.filter(finished_at=None).exists(), 60, what="all ended")

    ended = sum(by_status(Task).values())
    finished = "sum by (status) (taskqueue_tasks_finished_total)"
    wait_until(lambda: sum(query(finished).values()) == ended, 60, what="a scrape after the end")
    await_that(lambda: nonzero(query(finished)), by_status(Task))
    await_that(lambda: query("sum(taskqueue_tasks_enqueued_total)"), {(): Task.objects.count()})
    outcomes = by_status(Lease)
    assert outcomes["lost"] >= 2
    attempts = "sum by (outcome) (taskqueue_attempts_total)"
    await_that(lambda: nonzero(query(attempts)), outcomes)
    await_that(lambda: query("sum(taskqueue_leases_lost_total)"), {(): outcomes["lost"]})
    runs = outcomes["succeeded"] + outcomes["failed"]
    await_that(lambda: query("sum(taskqueue_attempt_run_seconds_count)"), {(): runs})
    await_that(lambda: [*query('taskqueue_workers{state="active"}').values()], [1])
    resets = wait_until(lambda: query("resets(taskqueue_attempts_total[1m])"), 60)
    assert set(resets.values()) == {0.0}
    check_own_figures(query, crashed=killed + 1)


def check_own_figures(query: Query, *, crashed: int) -> None:
    """The metrics of the worker itself: all but what its predecessor began."""
    worker = next(iter(wait_until(lambda: query("taskqueue_worker_info"), 60)))[3]
    own = by_status(Lease.objects.filter(worker_id=worker))
    attempts = "sum by (outcome) (taskqueue_worker_attempts_total)"
    await_that(lambda: nonzero(query(attempts)), own)
    await_that(lambda: [*query("taskqueue_worker_children_crashed_total").values()], [crashed])
    await_that(lambda: [*query("taskqueue_worker_slots").values()], [2])


def await_that(found: Callable[[], Any], expected: Any) -> None:
    """Wait for a scrape that says so: all has ended. One that came too late has no figures."""
    deadline = time.monotonic() + 60
    while (last := found()) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert last == expected


def kill_children(worker: WorkerProcess, *, of: Any) -> int:
    """Kill the child in which that task runs, and the others; how many there were."""
    wait_until(lambda: Lease.objects.filter(task_id=of, started_at__isnull=False).exists(), 60)
    children = children_of(worker.pid)
    for child in children:
        os.kill(child.pid, signal.SIGKILL)
    return len(children)


def by_status(rows: Any) -> dict[str, int]:
    manager = getattr(rows, "objects", rows)
    return dict(Counter(manager.values_list("status", flat=True)))
