"""The work of `runworker`, after its flags are parsed.

It is imported while the template imports the tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from taskqueue.conf import Settings, get_settings
from taskqueue.declarations.checks import check_transactions
from taskqueue.declarations.names import check_tags
from taskqueue.declarations.serving import parse_definition_slots
from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.exceptions import InvalidTask
from taskqueue.management.checking import Checker
from taskqueue.worker.forks import Template
from taskqueue.worker.logs import show_logs
from taskqueue.worker.meter import Meter
from taskqueue.worker.ports import Address, PortRefused, Route, listening
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.state import WorkerOptions, default_name
from taskqueue.worker.supervisor import NameTaken, WorkerFailed, run_worker
from taskqueue.worker.wakeup import ending_at_once, until_reached

LEVELS = {0: logging.WARNING, 1: logging.INFO}  # The level of the log by Django's `--verbosity`.
HEALTH, METRICS = "health_port", "metrics_port"
MISSING = (
    "--metrics-port needs the package prometheus-client, which is not installed. Install it with"
    " 'django-taskqueue[metrics]'."
)


def work(
    command: BaseCommand, flags: dict[str, Any], template: Template, checker: Checker | None
) -> None:
    """Work until told to stop, or drained. Raises `CommandError` if the worker cannot."""
    show_logs(LEVELS.get(flags["verbosity"], logging.DEBUG))
    meter = Meter()
    try:
        # Probes are answered while the worker waits for its database, and until it has ended.
        with ending_at_once(), open_ports(flags, meter):
            if checker is not None:
                checker.end(until_reached)
                _warn_of_transactions(command, get_settings().DATABASE)
            settings = get_settings()
            options = _options(settings, flags)
            # Only a signal ends the waiting: see `ending_at_once`.
            until_reached(partial(_refuse_unapplied_migrations, settings))
            run_worker(options, settings, meter, template)
    except (NameTaken, PortRefused, WorkerFailed) as error:
        raise CommandError(str(error)) from None


def _warn_of_transactions(command: BaseCommand, alias: str) -> None:
    """Warn as `command.check(databases=...)` would, which may ask a server that is away."""
    for message in check_transactions(databases=[alias]):
        if not message.is_silenced():
            command.stderr.write(command.style.WARNING(str(message)))


def _options(settings: Settings, flags: dict[str, Any]) -> WorkerOptions:
    try:
        queues = QueueQuotas.parse(flags["queues"], is_strict=flags["strict"])
        tags = check_tags("--tags", list(filter(None, flags["tags"].split(","))))
        definition_slots = parse_definition_slots(flags["definition_slots"])
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
        tags=tags,
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
        definition_slots=definition_slots,
        show_progress=flags["drain"] and flags["verbosity"] > 0,
    )


def _refuse_unapplied_migrations(settings: Settings) -> None:
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
