"""`manage.py runworker`: claim tasks and run them."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.conf import settings as django_settings
from django.core import mail
from django.core.management.base import BaseCommand, CommandError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from taskqueue.conf import Settings, get_settings
from taskqueue.declarations.checks import check_transactions, definitions_unread
from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.exceptions import InvalidTask
from taskqueue.worker.forks import Template
from taskqueue.worker.logs import show_logs
from taskqueue.worker.meter import Meter
from taskqueue.worker.ports import Address, PortRefused, Route, listening
from taskqueue.worker.state import QueueQuotas, WorkerOptions, default_name
from taskqueue.worker.supervisor import NameTaken, WorkerFailed, run_worker
from taskqueue.worker.wakeup import ending_at_once, until_reached

HEALTH, METRICS = "health_port", "metrics_port"
MISSING = (
    "--metrics-port needs the package prometheus-client, which is not installed. Install it with"
    " 'django-taskqueue[metrics]'."
)
# Children read the settings anew, with the real databases.
IN_TESTS = (
    "runworker does not run in the process of tests: its children would open the databases of the "
    "settings, not the tests'. taskqueue.testing has run_due(), and live_worker() for a worker in "
    "a process of its own."
)
LEVELS = {0: logging.WARNING, 1: logging.INFO}  # The level of the log, by Django's `--verbosity`.


class Command(BaseCommand):
    """A worker: a parent that claims and records, and children that run the bodies."""

    help = "Claim tasks and run them, until told to stop (TERM or INT) or drained (--drain)."

    # `handle` runs them: some ask the database, which may be away, and for which it waits.
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        weights = "queues and weights, such as critical=6,default=3,low; default: all queues"
        add("--queues", default="", help=weights)
        add("--strict", action="store_true", help="empty the queues in the order of --queues")
        add("--concurrency", type=_count, help="number of slots; default: one per CPU")
        add("--pool", choices=("process", "thread"))
        add("--name", default="", help="default: host, process id and a random part")
        add("--drain", action="store_true", help="exit once no task is left")
        add("--max-tasks", type=_count, help="replace a child process after this many tasks")
        add("--max-memory", type=_seconds, help="replace a child process that holds more megabytes")
        grace = "seconds to finish running tasks after TERM or INT"
        add("--shutdown-timeout", type=_seconds, help=grace)
        add("--poll-interval", type=_interval, help="seconds between two looks for tasks")
        reload = "replace child processes when code changes; default: on under DEBUG"
        add("--reload", action=argparse.BooleanOptionalAction, default=None, help=reload)
        add_port_flags(parser)
        add("--skip-checks", action="store_true", help="skip system checks")
        add("--noreload", action="store_false", dest="reload", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **flags: Any) -> None:
        if hasattr(mail, "outbox"):  # As Django's own test environment leaves its mark.
            raise CommandError(IN_TESTS)
        with closing(Template()) as template:
            # First of all: threads and connections of the worker must not be in it.
            template.begin()
            show_logs(LEVELS.get(flags["verbosity"], logging.DEBUG))
            self._work(flags, template)

    def _work(self, flags: dict[str, Any], template: Template) -> None:
        meter = Meter()
        try:
            # Probes are answered while the worker waits for its database, and until it has ended.
            with ending_at_once(), open_ports(flags, meter):
                if not flags["skip_checks"]:
                    with definitions_unread():
                        until_reached(self.check)
                    self._warn_of_transactions(get_settings().DATABASE)
                settings = get_settings()
                options = self._options(settings, flags)
                # Only a signal ends the waiting: see `ending_at_once`.
                until_reached(partial(self._refuse_unapplied_migrations, settings))
                run_worker(options, settings, meter, template)
        except (NameTaken, PortRefused, WorkerFailed) as error:
            raise CommandError(str(error)) from None

    def _warn_of_transactions(self, alias: str) -> None:
        """Warn as `self.check(databases=...)` would, which may ask a server that is away."""
        for message in check_transactions(databases=[alias]):
            if not message.is_silenced():
                self.stderr.write(self.style.WARNING(str(message)))

    def _options(self, settings: Settings, flags: dict[str, Any]) -> WorkerOptions:
        try:
            queues = QueueQuotas.parse(flags["queues"], is_strict=flags["strict"])
        except InvalidTask as error:
            raise CommandError(str(error)) from None
        name = flags["name"] or default_name()
        if len(name) > 150 or not name.isprintable():
            raise CommandError("--name may have 150 printable characters.")
        timeout, poll = flags["shutdown_timeout"], flags["poll_interval"]
        if poll is None and settings.POLL_INTERVAL is not None:
            poll = settings.POLL_INTERVAL.total_seconds()
        return WorkerOptions(
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
            show_progress=flags["drain"] and flags["verbosity"] > 0,
        )

    def _refuse_unapplied_migrations(self, settings: Settings) -> None:
        alias = settings.DATABASE
        module, _ = MigrationLoader.migrations_module("taskqueue")
        if module is None:
            return
        package = import_module(module)
        names = {each.name for each in iter_modules(package.__path__) if each.name[0] not in "_~"}
        # The project's own connection may wait without a limit for a host that does not answer.
        connection = open_worker_connection(silence=settings.LEASE_DURATION.total_seconds() / 3)
        with closing(connection), installed(connection):
            applied = MigrationRecorder(connection).applied_migrations()
        missing = sorted(name for name in names if ("taskqueue", name) not in applied)
        if missing:
            raise CommandError(
                f"Migrations are not applied: {', '.join(f'taskqueue.{name}' for name in missing)}."
                f" Run manage.py migrate --database {alias}."
            )


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


_seconds, _interval = _number(0, 10**9), _number(0.01, 10**6)


def add_port_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; several may name the same port, on the loopback unless they name a host."""
    for name, answers in (("health", "/live and /ready"), ("metrics", "/metrics for Prometheus")):
        parser.add_argument(
            f"--{name}-port",
            type=_address,
            metavar="[HOST:]PORT",
            help=f"answer {answers} over HTTP; on the loopback unless a host is named",
        )


@contextmanager
def open_ports(flags: dict[str, Any], meter: Meter) -> Iterator[list[Address]]:
    """Answer on the ports that the flags name. Raises `PortRefused` where one cannot be opened."""
    routes: dict[Address, dict[str, Route]] = {}
    if (address := flags[HEALTH]) is not None:
        routes[address] = {"/live": meter.vitals.live, "/ready": meter.vitals.ready}
    if (address := flags[METRICS]) is not None:
        routes.setdefault(address, {})["/metrics"] = _metrics_of(meter)
    with listening(routes) as addresses:
        yield addresses


def _metrics_of(meter: Meter) -> Route:
    try:
        from taskqueue.worker.metrics import route
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "prometheus_client":
            raise
        raise CommandError(MISSING) from None
    return partial(route, meter)


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
