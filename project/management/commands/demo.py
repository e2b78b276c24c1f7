"""`manage.py demo`: see the queue at work on real files, from an empty database to a summary."""

from __future__ import annotations

import os
import signal
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import django
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from project import tasks
from project.demo import database
from project.demo.errors import DemoError
from project.demo.progress import ProgressBar
from project.demo.services import Services
from project.demo.state import clean_directory
from project.demo.summary import (
    describe_findings,
    describe_reduction,
    describe_schedule,
    describe_work,
)
from project.demo.verification import find_problems, reduce_directly
from project.demo.work import OWN, Watch, enqueue_work
from project.sources import find_sources
from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.management.cli.values import duration

TIMEOUT = timedelta(minutes=10)
LOOK_SECONDS = 0.5
LOGIN = f"(log in as {database.USERNAME} with {database.PASSWORD})"


class Command(BaseCommand):
    """Start everything, let it work, and say what came out."""

    help = "Run a web server and a worker, let them read source files, and show what they found."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--exit", action="store_true", help="end by itself")
        parser.add_argument(
            "--postgres", action="store_true", help="run an embedded PostgreSQL in place of SQLite"
        )
        parser.add_argument("--port", type=int, help="of the web server; 8000 if it is free")
        parser.add_argument(
            "--worker-concurrency",
            type=_count,
            default=os.cpu_count() or 1,
            metavar="N",
            help="how many tasks run at once; as many as there are CPUs",
        )
        parser.add_argument(
            "--root",
            type=_folder,
            default=Path(django.__file__).parent,
            metavar="FOLDER",
            help="whose source files are read; otherwise those of Django",
        )
        parser.add_argument(
            "--timeout",
            type=duration,
            default=TIMEOUT,
            metavar="DURATION",
            help="give up when the work takes longer, such as 5m; 10m by default",
        )

    def handle(self, **options: Any) -> None:
        """Exits non-zero unless everything that was enqueued came to its right end."""
        # SIGINT too: a shell without job control lets what it starts with & ignore it.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        try:
            problems = self._run(options)
        except KeyboardInterrupt:
            raise DemoError("Stopped before the end.", returncode=130) from None
        if problems:
            raise DemoError("Not all is as it should be: see above.")

    def _run(self, options: dict[str, Any]) -> list[str]:
        with self._services(options) as services:
            problems = self._work(services, options)
            self.stdout.write(
                f"\nThe dashboard: {services.address}/admin/taskqueue/dashboard/  {LOGIN}"
            )
            if not options["exit"]:
                self._stay(services)
            if code := services.stop_worker():
                problems += self._report([f"The worker ended with exit code {code}."])
        return problems

    @contextmanager
    def _services(self, options: dict[str, Any]) -> Iterator[Services]:
        """Everything that runs: the database, the web server, the worker."""
        use_database = database.postgresql if options["postgres"] else database.sqlite
        with clean_directory(settings.DEMO_DIRECTORY) as directory:
            self.stdout.write(f"Preparing {use_database.__name__} in {directory} ...")
            with (
                use_database(directory),
                Services(
                    directory, port=options["port"], concurrency=options["worker_concurrency"]
                ) as services,
            ):
                yield services

    def _work(self, services: Services, options: dict[str, Any]) -> list[str]:
        """Let the worker do it all, show what it found, and return what is wrong with it."""
        root = options["root"]
        self.stdout.write(f"Watch it at {services.address}/  {LOGIN}")
        self.stdout.write(f"Reading the source files in {root}\n\n")
        watch = Watch(
            services=services, deadline=time.monotonic() + options["timeout"].total_seconds()
        )
        work = enqueue_work(root)
        with ProgressBar(self.stdout) as bar:
            watch.wait_for_all(bar, expected=len(find_sources(root)) + len(work))
        watch.wait_for(work.reduced)
        summary = tasks.summarize.enqueue()
        watch.wait_for(summary)
        schedule = watch.wait_for_schedule(tasks.STOCK.name)
        problems = find_problems(root, work)
        if summary.status == TaskStatus.SUCCEEDED:
            self._write("", *describe_findings(summary.return_value))
        if work.reduced.status == WorkflowStatus.SUCCEEDED:
            self._write("", *describe_reduction(work.reduced, reduce_directly(OWN)))
        self._write("", *describe_work(work, concurrency=options["worker_concurrency"]))
        self._write(*describe_schedule(schedule))
        return self._report(problems)

    def _stay(self, services: Services) -> None:
        self.stdout.write("Press Ctrl-C to stop.")
        try:
            while True:
                services.ensure_alive()
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            self.stdout.write("\nStopping ...")

    def _report(self, problems: list[str]) -> list[str]:
        self.stdout.flush()  # Or a pipe shows them before what was written earlier.
        for problem in problems:
            self.stderr.write(f"Wrong: {problem}")
        return problems

    def _write(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Let everything be stopped in order."""
    raise KeyboardInterrupt


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _folder(text: str) -> Path:
    path = Path(text).absolute()
    if not path.is_dir():
        raise ArgumentTypeError(f"{text!r} is not a folder")
    return path
