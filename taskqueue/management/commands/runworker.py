"""`manage.py runworker`: claim tasks and run them."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from taskqueue.conf import get_settings
from taskqueue.exceptions import InvalidTask
from taskqueue.worker.enrolment import NameTaken
from taskqueue.worker.lanes import QueueChoice
from taskqueue.worker.options import WorkerOptions, default_name
from taskqueue.worker.supervisor import Supervisor, WorkerFailed


class Command(BaseCommand):
    """A worker: a parent that claims and records, and children that run the bodies."""

    help = "Claim tasks and run them, until told to stop (TERM or INT) or drained (--drain)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--queues", default="", help="such as critical=6,default=3,low; all when left out"
        )
        parser.add_argument(
            "--strict", action="store_true", help="drain the queues in the order given"
        )
        parser.add_argument("--concurrency", type=_count, help="slots; default: the CPUs")
        parser.add_argument("--pool", choices=("process", "thread"))
        parser.add_argument("--name", default="", help="the worker's identity")
        parser.add_argument("--drain", action="store_true", help="exit once a claim finds nothing")
        parser.add_argument(
            "--max-tasks", type=_count, help="replace a child after that many tasks"
        )
        parser.add_argument(
            "--max-memory", type=_seconds, help="replace a child that holds more megabytes"
        )
        parser.add_argument(
            "--shutdown-timeout", type=_seconds, help="seconds to finish in after TERM or INT"
        )
        parser.add_argument("--poll-interval", type=_interval, help="seconds between two looks")
        parser.add_argument(
            "--reload", action=argparse.BooleanOptionalAction, default=None,
            help="replace children when code changes; on under DEBUG",
        )  # fmt: skip
        parser.add_argument(
            "--noreload", action="store_false", dest="reload", help=argparse.SUPPRESS
        )

    def handle(self, *args: Any, **flags: Any) -> None:
        settings = get_settings()
        self._refuse_unapplied_migrations(settings.DATABASE)
        try:
            queues = QueueChoice.parse(flags["queues"], is_strict=flags["strict"])
        except InvalidTask as error:
            raise CommandError(str(error)) from None
        name = flags["name"] or default_name()
        if len(name) > 150 or not name.isprintable():
            raise CommandError("--name may have 150 printable characters.")
        timeout, poll = flags["shutdown_timeout"], flags["poll_interval"]
        if poll is None and settings.POLL_INTERVAL is not None:
            poll = settings.POLL_INTERVAL.total_seconds()
        options = WorkerOptions(
            queues=queues,
            concurrency=flags["concurrency"] or settings.CONCURRENCY,
            pool=flags["pool"] or settings.POOL,
            name=name,
            drain=flags["drain"],
            max_tasks=flags["max_tasks"],
            max_memory=flags["max_memory"],
            shutdown_timeout=(
                settings.SHUTDOWN_TIMEOUT.total_seconds() if timeout is None else timeout
            ),
            poll_interval=poll,
            reload=django_settings.DEBUG if flags["reload"] is None else flags["reload"],
            show_progress=flags["drain"],
        )
        show_logs(flags["verbosity"])
        try:
            Supervisor(options, settings).run()
        except (NameTaken, WorkerFailed) as error:
            raise CommandError(str(error)) from None

    def _refuse_unapplied_migrations(self, alias: str) -> None:
        executor = MigrationExecutor(connections[alias])
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "taskqueue"]
        missing = executor.migration_plan(targets)
        connections[alias].close()
        if missing:
            names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing)
            raise CommandError(
                f"Migrations are not applied: {names}. Run manage.py migrate --database {alias}."
            )


def show_logs(verbosity: int) -> None:
    """Show the worker's log where the project's LOGGING says nothing about it."""
    logger = logging.getLogger("taskqueue")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel({0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < 10**9:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _interval(text: str) -> float:
    number = float(text)
    if not 0.01 <= number < 10**6:
        raise argparse.ArgumentTypeError("must be 0.01 or more")
    return number
