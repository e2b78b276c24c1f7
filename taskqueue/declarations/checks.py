"""System checks of the settings, the database, and the declared schedules and limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.utils.module_loading import import_string

from taskqueue import conf
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.declared_schedules import named
from taskqueue.declarations.defaults import check_defaults
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.placement import declared_limits, numbers_of
from taskqueue.declarations.workflows.scheduling import Target, all_targets, check_target
from taskqueue.exceptions import InvalidSchedule, InvalidTask

VENDORS = ("postgresql", "sqlite")
# With these, web processes and workers write side by side.
SQLITE_OPTIONS = {
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
}
_are_skipped: ContextVar[bool] = ContextVar("taskqueue_schedule_checks_are_skipped", default=False)


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check the keys and values of `TASKQUEUE`, the database, and that time zones are on."""
    return list(_wrong_settings())


def _wrong_settings() -> Iterator[CheckMessage]:
    settings, mistakes = conf.parse(getattr(django_settings, "TASKQUEUE", {}))
    for mistake in mistakes:
        yield Error(str(mistake), hint=mistake.hint or None, id="taskqueue.E001")
    if not django_settings.USE_TZ:
        yield Error(
            "taskqueue needs aware datetimes.", hint="Set USE_TZ = True.", id="taskqueue.E002"
        )
    # A class that does not exist would make every request to the API fail with 500. Processes
    # without `rest_framework` serve no API, and may lack what the classes need.
    paths = settings.API_AUTHENTICATION if apps.is_installed("rest_framework") else ()
    for path in paths or ():
        if reason := _trouble_with(path):
            yield Error(
                f"TASKQUEUE['API_AUTHENTICATION'] names {path!r}, which {reason}.",
                hint="Name classes such as 'rest_framework.authentication.SessionAuthentication'.",
                id="taskqueue.E006",
            )
    if settings.TRACING and find_spec("opentelemetry") is None:
        yield Error(
            "TASKQUEUE['TRACING'] needs OpenTelemetry, which is not installed.",
            hint="Install it: pip install django-taskqueue[otel].",
            id="taskqueue.E008",
        )
    connection = connections[settings.DATABASE]
    if connection.vendor not in VENDORS:
        yield Error(
            f"taskqueue does not run on {connection.display_name}.",
            hint="Point TASKQUEUE['DATABASE'] at a PostgreSQL or SQLite database.",
            id="taskqueue.E003",
        )


def _trouble_with(path: str) -> str:
    """Return why it is not an authentication class; empty if it is one."""
    try:
        imported = import_string(path)
    except Exception as error:  # A module may raise anything.
        return f"cannot be imported: {type(error).__name__}: {error}"
    is_login = isinstance(imported, type) and hasattr(imported, "authenticate")
    return "" if is_login else "is not an authentication class"


def check_transactions(
    app_configs: Any = None, databases: Collection[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Check that transactions on SQLite wait for the write lock, if that database is checked.

    `migrate`, `check --database`, `runworker` and the doctor check it; other commands do not.
    """
    alias = conf.get_settings().DATABASE
    connection = connections[alias]
    mode = connection.settings_dict.get("OPTIONS", {}).get("transaction_mode")
    if alias not in (databases or ()) or connection.vendor != "sqlite" or mode == "IMMEDIATE":
        return []
    return [
        Warning(
            "On SQLite, a transaction that reads before it writes can fail with "
            "'database is locked' while a worker writes.",
            hint=f"Set DATABASES[{alias!r}]['OPTIONS'] = {SQLITE_OPTIONS}.",
            id="taskqueue.W001",
        )
    ]


@contextmanager
def definitions_unread() -> Iterator[None]:
    """Skip these checks: they import the definitions, which a worker's parent must not."""
    token = _are_skipped.set(True)
    try:
        yield
    finally:
        _are_skipped.reset(token)


def check_schedules(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that every declared schedule can work, and has a name of its own."""
    if _are_skipped.get():
        return []
    try:
        declared = all_targets()
    except Exception as error:  # A module of the project may raise anything.
        return [
            Warning(
                "Schedules were not checked, because the definitions cannot be imported: "
                f"{type(error).__name__}: {error}",
                hint="Import the `tasks` modules of the installed apps one by one.",
                id="taskqueue.W002",
            )
        ]
    return list(_wrong_schedules(declared))


def _wrong_schedules(declared: Iterable[Target]) -> Iterator[CheckMessage]:
    places: dict[str, str] = {}
    for definition in declared:
        for name, scheduled in named(definition):
            try:
                check_target(scheduled, definition)
            except InvalidSchedule as error:
                yield Error(f"The schedule {name!r} cannot work: {error}", id="taskqueue.E004")
            if not isinstance(name, str):
                continue
            if name in places:
                yield Error(
                    f"Two schedules are named {name!r}: of {places[name]} and {definition.name}.",
                    hint="Give one of them another name: Scheduled(rule, name=...).",
                    id="taskqueue.E005",
                )
            places.setdefault(name, definition.name)


def check_option_defaults(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check the options of `TASKQUEUE["DEFAULTS"]`, and that each pattern matches a definition."""
    if _are_skipped.get():
        return []
    found: list[CheckMessage] = []
    patterns = conf.get_settings().DEFAULTS
    for pattern, options in patterns.items():
        try:
            check_defaults(pattern, options)
        except InvalidTask as error:
            found.append(Error(str(error), id="taskqueue.E009"))
    try:
        names = [definition.name for definition in registry.all()] if patterns else []
    except Exception:  # `check_schedules` reports it.
        return found
    found += [
        Warning(
            f"TASKQUEUE['DEFAULTS'] has the pattern {pattern!r}, which matches no definition.",
            hint=did_you_mean(pattern, names, otherwise="").strip() or None,
            id="taskqueue.W003",
        )
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    return found


def check_limits(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that definitions which share a limit by its name declare the same one."""
    if _are_skipped.get():
        return []
    try:
        definitions = registry.all()
    except Exception:  # `check_schedules` reports it.
        return []
    return list(_unlike_limits(definitions))


def _unlike_limits(definitions: Iterable[BaseDefinition[Any, Any]]) -> Iterator[CheckMessage]:
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    for definition in definitions:
        for limit in declared_limits(definition.limits, definition.name):
            place, other = first.setdefault(limit["name"], (definition.name, limit))
            if other != limit:
                yield Error(
                    f"Two limits are named {limit['name']!r} and differ: {numbers_of(other)} of "
                    f"{place}, and {numbers_of(limit)} of {definition.name}.",
                    hint="Declare the same limit in both, or give one of them another name.",
                    id="taskqueue.E007",
                )
