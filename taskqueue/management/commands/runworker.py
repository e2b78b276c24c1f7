"""`manage.py runworker`: claim tasks and run them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from django.core import mail
from django.core.management.base import BaseCommand, CommandError

from taskqueue.core.durations import duration_from_text
from taskqueue.management.checking import Checker
from taskqueue.worker.forks import Template

# Children read the settings again, with the real databases.
IN_TESTS = (
    "runworker does not run in the process of tests: its children would open the databases of the "
    "settings, not the tests'. taskqueue.testing has run_due(), and live_worker() for a worker in "
    "a process of its own."
)


class Command(BaseCommand):
    """A worker: a parent that claims and records, and children that run the bodies."""

    help = "Claim tasks and run them, until told to stop (TERM or INT) or drained (--drain)."

    # `handle` runs them: some query the database, which may be away, and then it waits.
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.allow_abbrev = False
        add = parser.add_argument
        weights = (
            "queues with weights, and the most slots of this worker for a queue, such as "
            "critical=6,mail=3@2,low@1; default: all queues"
        )
        add("--queues", default="", help=weights)
        add("--strict", action="store_true", help="empty the queues in the order of --queues")
        tags = "what this worker has, such as gpu,eu: for tasks with requires="
        add("--tags", default="", help=tags)
        slots = "the most slots of this worker for a definition, such as shop.tasks.export=1"
        add("--definition-slots", default="", metavar="NAME=SLOTS,…", help=slots)
        add("--concurrency", type=_count, help="number of slots; default: one per CPU")
        pools = "process: a child process for each slot; thread: one with this many threads"
        add("--pool", choices=("process", "thread"), help=pools)
        add("--name", default="", help="default: host, process id and a random part")
        add("--drain", action="store_true", help="exit once no task is left")
        add("--max-tasks", type=_count, help="replace a child process after this many tasks")
        add(
            "--max-memory",
            type=_megabytes,
            help="replace a child process that uses more memory, in megabytes",
        )
        grace = "time to finish running tasks after TERM or INT, such as 30s"
        add("--shutdown-timeout", type=_seconds, help=grace)
        add(
            "--poll-interval",
            type=_interval,
            help="time between two looks for tasks, such as 500ms",
        )
        reload = "replace child processes when code changes; default: on under DEBUG"
        add("--reload", action=argparse.BooleanOptionalAction, default=None, help=reload)
        add_port_flags(parser)
        add("--skip-checks", action="store_true", help="skip system checks")
        add("--noreload", action="store_false", dest="reload", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **flags: Any) -> None:
        if hasattr(mail, "outbox"):  # Django's own test environment sets this.
            raise CommandError(IN_TESTS)
        with closing(Template()) as template, closing(Checker(self)) as checker:
            # First of all, because the copies must not contain threads and connections of the
            # worker. While one copy imports the tasks and the other runs checks, this process
            # imports the worker.
            template.begin()
            if not flags["skip_checks"]:
                checker.begin(template)
            from taskqueue.management.working import work

            work(self, flags, template, None if flags["skip_checks"] else checker)


def _count(text: str) -> int:
    with suppress(ValueError):
        if (number := int(text)) >= 1:
            return number
    raise argparse.ArgumentTypeError("must be a whole number of at least 1")


def _number(least: float, limit: int) -> Callable[[str], float]:
    """Return a function that reads a number from `least` on, below `limit`."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= (number := float(text)) < limit:
                return number
        raise argparse.ArgumentTypeError(f"must be a number of at least {least}, below {limit:,}")

    return read


def _duration(least: float, limit: int) -> Callable[[str], float]:
    """Return a function that reads seconds, or durations such as 30s, 1m and 250ms."""
    number = _number(least, limit)

    def read(text: str) -> float:
        with suppress(ValueError):
            return number(f"{duration_from_text(text).total_seconds()}")
        return number(text)

    return read


_megabytes = _number(0, 10**9)
_seconds, _interval = _duration(0, 10**9), _duration(0.01, 10**6)


def add_port_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags. Several may name the same port; the default host is the loopback address."""
    for name, answers in (("health", "/live and /ready"), ("metrics", "/metrics for Prometheus")):
        parser.add_argument(
            f"--{name}-port",
            type=_address,
            metavar="[HOST:]PORT",
            help=f"answer {answers} over HTTP; on the loopback unless a host is named",
        )


def _address(text: str) -> Any:
    from taskqueue.worker.ports import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
