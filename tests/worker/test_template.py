"""Children are copies of a process that has the project's imports, and of nothing but these."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import transaction

from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.shop import Shop
from tests.worker_process import WorkerProcess, children_of, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere children are started clean"),
]

THREAD = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
SOCKET = """
import socket
kept = socket.socketpair()
"""
CONNECTION = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT 1")
"""
CHANCE = """
import random
from taskqueue import task

own = random.random()

@task
def price():
    import time
    time.sleep(0.2)
    return [own, random.random()]
"""


def template_of(worker: WorkerProcess) -> list[psutil.Process]:
    """The template, if there is one. A copy has its name too until it has begun."""
    found: list[psutil.Process] = []

    def no_copy_begins() -> bool:
        found.clear()
        for process in psutil.Process(worker.pid).children():
            with suppress(psutil.NoSuchProcess):  # A child may end meanwhile.
                if process.name() == "taskqueue-base":
                    found.append(process)
        return len(found) < 2

    wait_until(no_copy_begins, what="the copies to begin")
    return found


def run(definition: Any = tasks.process_of) -> Any:
    return definition.enqueue().wait(60).return_value


def prices(count: int) -> Iterable[Any]:
    """Return the result of the shop's task, which this process does not know."""
    with transaction.atomic():
        ids = [tasks.noop.enqueue().id for _ in range(count)]
        Task.objects.filter(id__in=ids).update(name="shop.tasks.price")

    def have_ended() -> bool:
        return Task.objects.filter(id__in=ids, status="succeeded").count() == count

    wait_until(have_ended, 60, what="the ends of all")
    return Task.objects.filter(id__in=ids).values_list("return_value", flat=True)


def test_the_template_has_one_thread_and_one_socket(start_worker: StartWorker, pool: str) -> None:
    worker = start_worker("--pool", pool)
    run()

    [template] = template_of(worker)

    assert template.num_threads() == 1
    folder = Path(f"/proc/{template.pid}/fd")
    links = [os.readlink(each) for each in folder.iterdir() if int(each.name) > 2]
    assert sum(link.startswith("socket:") for link in links) == 1
    assert not any(link.startswith("/dev/shm/taskqueue-") for link in links), (
        "the worker's lock ends with its children"
    )


def test_children_are_copies_that_are_the_workers_own(start_worker: StartWorker) -> None:
    worker = start_worker("--concurrency", "2")
    process = psutil.Process(run())

    assert process.ppid() == worker.pid
    assert process.cmdline() == psutil.Process(worker.pid).cmdline()
    assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid


def test_the_error_of_a_crash_names_the_exit_code(start_worker: StartWorker) -> None:
    start_worker()

    tasks.exit_hard.using(max_crashes=1).enqueue(7).wait(60)

    assert "exit code 7" in Lease.objects.get().error_message


@pytest.mark.parametrize("end", [psutil.Process.kill, psutil.Process.suspend])
def test_a_template_that_is_lost_costs_no_task_and_is_replaced(
    start_worker: StartWorker, end: Callable[[psutil.Process], None]
) -> None:
    worker = start_worker("--concurrency", "1")
    first = run()
    [template] = template_of(worker)

    end(template)
    assert run() == first, "its copies live on"
    os.kill(first, signal.SIGKILL)

    second = run()
    assert "Template of children lost" in worker.log()
    assert "taskqueue.worker.child" in psutil.Process(second).cmdline(), "it was started clean"
    [template] = wait_until(lambda: template_of(worker), what="another template")
    os.kill(second, signal.SIGKILL)

    assert psutil.Process(run()).cmdline() == template.cmdline()


def test_code_that_has_changed_gets_another_template(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    shop = Shop(tmp_path)
    worker = start_worker("--concurrency", "1", "--max-tasks", "1", env=shop.environment)
    assert list(prices(1)) == [1]

    shop.set_price(2)
    # The child that was there already, one that is started clean, and copies of the new template.
    prices(2)

    assert set(prices(3)) == {2}
    assert "Code changed on disk, new children load it" in worker.log()

    def is_a_copy() -> bool:
        for child in children_of(worker.pid):
            with suppress(psutil.NoSuchProcess):  # Each ends after its task.
                if "taskqueue.worker.template" in child.cmdline():
                    return True
        return False

    wait_until(is_a_copy, what="a child that is a copy of the new template")


def test_the_signals_of_a_whole_group_do_not_end_the_template(start_worker: StartWorker) -> None:
    worker = start_worker("--concurrency", "1", "--max-tasks", "1")
    first = run()
    [template] = template_of(worker)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(template.pid, number)

    assert run() != first
    assert template_of(worker) == [template]


@pytest.mark.parametrize(
    ("text", "reason"),
    [(THREAD, "a thread"), (SOCKET, "a socket")],
    ids=["thread", "socket"],
)
def test_imports_that_could_not_be_copied_are_made_by_each_child(
    start_worker: StartWorker, tmp_path: Path, text: str, reason: str
) -> None:
    shop = Shop(tmp_path)
    shop.deploy(text + CHANCE)

    worker = start_worker("--concurrency", "1", env=shop.environment)

    assert len(list(prices(1))) == 1
    assert "Each child imports the project on its own" in worker.log()
    assert reason in worker.log()
    assert template_of(worker) == []
    [child] = children_of(worker.pid)
    assert "taskqueue.worker.child" in child.cmdline()


def test_a_connection_that_an_import_has_left_is_closed(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    shop = Shop(tmp_path)
    shop.deploy(CONNECTION + CHANCE)

    worker = start_worker("--concurrency", "2", env=shop.environment)

    assert len(list(prices(4))) == 4
    [template] = template_of(worker)
    assert not template.net_connections("inet")


def test_copies_draw_different_numbers(start_worker: StartWorker, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.deploy(CHANCE)
    worker = start_worker("--concurrency", "2", env=shop.environment)
    wait_until(lambda: len(children_of(worker.pid)) == 2)

    drawn = list(prices(8))

    assert len({own for own, _ in drawn}) == 1, "they are copies"
    assert len({number for _, number in drawn}) == 8
