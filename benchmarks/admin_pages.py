"""Measure the faces over many tasks: `python -m benchmarks.admin_pages [--tasks N] [--of api]`.

Fills its own PostgreSQL, requests every page of the admin and every address of the REST API that
shows something, 30 times as a superuser, and prints the response times, the number of statements of
each, and whether a statement reads a large table completely. Then it times the first requests of
new processes. Exits with 1 if a page exceeds a limit. Creating 10,000,000 tasks takes three minutes
or more, and 12 GB of disk below TMPDIR; `--data` keeps them for the next run.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import admin_addresses, api_addresses
from benchmarks.harness import SERVER_SETTINGS, say
from project.postgres import Server

if TYPE_CHECKING:
    from django.test import Client

MOST_MILLISECONDS, MOST_QUERIES = 300, 15
REQUESTS = 30
BYTES_A_TASK = 1_200
"""Of disk: 600 in the database, with their share of all else, the rest in its log."""
FACES = {"admin": admin_addresses.addresses, "api": api_addresses.addresses}
FIRST = ("/admin/taskqueue/task/?q=name%3Ashop.tasks.rarely", "/admin/taskqueue/dashboard/")
LARGE = ("taskqueue_task", "taskqueue_lease")
FAST_FILLING: dict[str, str | int] = {
    **SERVER_SETTINGS,
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "maintenance_work_mem": "512MB",
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """An address, and what it came to."""

    address: str
    milliseconds: list[float]
    cpu: float
    """Milliseconds of this process's own work, at the median: these do not wait for others."""
    queries: int
    scans: list[str]
    slowest: str
    """The statement that took longest, and how many milliseconds."""

    @property
    def p95(self) -> float:
        """By the nearest rank."""
        return sorted(self.milliseconds)[round(0.95 * len(self.milliseconds)) - 1]

    @property
    def is_within(self) -> bool:
        """Whether it keeps to every limit."""
        return self.p95 <= MOST_MILLISECONDS and self.queries <= MOST_QUERIES and not self.scans

    def __str__(self) -> str:
        return (
            f"{'ok  ' if self.is_within else 'OVER'}"
            f" {statistics.median(self.milliseconds):7.0f} {self.p95:7.0f}"
            f" {max(self.milliseconds):7.0f} {self.cpu:7.0f} {self.queries:4d}  {self.address}"
            + "".join(f"\n       scan: {line}" for line in self.scans)
            + ("" if self.is_within else f"\n       slowest statement: {self.slowest}")
        )


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.admin_pages", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000_000, help="how many there are")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of each page")
    parser.add_argument("--of", choices=FACES, help="one face alone")
    parser.add_argument(
        "--data", type=Path, help="keep the rows there, and use those that there are"
    )
    arguments = parser.parse_args()
    free = shutil.disk_usage(tempfile.gettempdir()).free
    is_filled = arguments.data is not None and (arguments.data / "PG_VERSION").exists()
    if not is_filled and free < arguments.tasks * BYTES_A_TASK:
        parser.error(
            f"{free / 1e9:.0f} GB of disk are free: too few for {arguments.tasks:,} tasks."
        )
    server = Server(settings=FAST_FILLING, directory=arguments.data)
    with tempfile.TemporaryDirectory() as folder, server:
        _set_up(server, Path(folder))
        client = _prepared(arguments.tasks)
        pages = []
        for face in FACES if arguments.of is None else [arguments.of]:
            for address in FACES[face](client):
                pages.append(_measured(client, address, arguments.requests))
                say(str(pages[-1]))
        print(_table(pages, arguments.tasks))
        for address in FIRST:
            print(f"first and second request of a process: {_first(client, address)}  {address}")
    sys.exit(not all(page.is_within for page in pages))


def _set_up(server: Server, folder: Path) -> None:
    """The demo project, on a database of this server."""
    server.create_database("admin_pages")
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    os.environ["TASKQUEUE_DEMO_DIRECTORY"] = str(folder)
    os.environ["TASKQUEUE_DEMO_DATABASE_URL"] = (
        f"postgresql://postgres@{server.host}:{server.port}/admin_pages"
    )
    import django
    from django.conf import settings

    settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["testserver"]
    # Requests are measured, and not how many of them somebody may send.
    settings.TASKQUEUE = {
        **settings.TASKQUEUE,
        "API_THROTTLE_RATES": {"read": None, "act": None, "enqueue": None},
    }
    django.setup()
    logging.disable(logging.WARNING)


def _prepared(tasks: int) -> Client:
    """Migrated and filled, if it was not before; a client of somebody who may do everything."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from benchmarks import admin_rows
    from project.tasks import walk
    from taskqueue import Every, schedules
    from taskqueue.models import Task

    call_command("migrate", verbosity=0)
    if not Task.objects.exists():
        admin_rows.fill(admin_rows.Sizes(tasks), say)
        for number in range(40):
            schedules.create(f"schedule-{number}", walk, Every(hours=number + 1), args=["."])
        admin_rows.fill_occurrences()
        admin_rows.settle()
        get_user_model().objects.create_superuser("ann")
    client = Client()
    client.force_login(get_user_model().objects.get(username="ann"))
    return client


def _first(client: Client, address: str) -> str:
    """The milliseconds of the first requests of some new processes, and of their second ones."""
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    command = [sys.executable, "-m", "benchmarks.first_request", address, cookie]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(5)]
    return ", ".join("/".join(run.stdout.split()) for run in runs)


def _measured(client: Client, address: str, requests: int) -> Page:
    from django.db import connection

    sent: list[tuple[float, str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, parameters, many, context)
        finally:
            sent.append((1000 * (time.perf_counter() - began), sql, parameters))

    took, worked = [], []
    for _ in range(requests):
        began, work_began = time.perf_counter(), time.process_time()
        response = client.get(address)
        took.append(1000 * (time.perf_counter() - began))
        worked.append(1000 * (time.process_time() - work_began))
        if response.status_code not in (200, 403):
            say(f"{address} answers {response.status_code}")
    with connection.execute_wrapper(note):
        client.get(address)
    slowest = max(sent, default=(0.0, "", None))
    return Page(
        address=address,
        milliseconds=took,
        cpu=statistics.median(worked),
        queries=len(sent),
        scans=[line for _, sql, parameters in sent for line in _scans(sql, parameters)],
        slowest=f"{slowest[0]:.0f} ms: {' '.join(slowest[1].split())[:300]}",
    )


def _scans(sql: str, parameters: Any) -> list[str]:
    """The lines of its plan that read a large table whole."""
    from django.db import connection

    if not sql.lstrip().startswith(("SELECT", "WITH")) or not any(name in sql for name in LARGE):
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", parameters)
        lines = [str(row[0]).strip() for row in cursor.fetchall()]
    return [line for line in lines if any(f"Seq Scan on {name} " in line for name in LARGE)]


def _table(pages: list[Page], tasks: int) -> str:
    head = (
        f"{tasks:,} tasks, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f};"
        f" milliseconds, the limit of p95 is {MOST_MILLISECONDS}"
    )
    columns = f"     {'p50':>7} {'p95':>7} {'max':>7} {'cpu':>7} queries"
    return "\n".join([head, columns, *map(str, pages)])


if __name__ == "__main__":
    main()
