"""`manage.py check` finds what would not work, before the first task."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from taskqueue import Concurrency, Rate, task
from taskqueue.declarations.checks import check_settings, check_transactions
from taskqueue.declarations.definition import registry
from taskqueue.declarations.definition_checks import check_limits, check_pools


def ours() -> list[CheckMessage]:
    """What all checks say of taskqueue; some of Django's own may ask the database."""
    return [message for message in run_checks() if (message.id or "").startswith("taskqueue.")]


class Elsewhere:
    """Connections that name another database under every alias."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection

    def __getitem__(self, alias: str) -> BaseDatabaseWrapper:
        return self._connection


def a_database(engine: str, **settings: Any) -> BaseDatabaseWrapper:
    """A connection that is never opened."""
    from django.db.utils import load_backend

    backend: Any = load_backend(engine)
    wrapper: BaseDatabaseWrapper = backend.DatabaseWrapper({"OPTIONS": {}, **settings}, "other")
    return wrapper


@pytest.mark.django_db
def test_the_projects_settings_have_no_mistake() -> None:
    assert ours() == []


@pytest.mark.django_db
def test_every_mistake_in_the_settings_is_an_error_with_its_hint() -> None:
    with override_settings(TASKQUEUE={"POOL": "fork", "MAX_ATEMPTS": 3}):
        errors = {message.msg: message for message in ours()}
    assert {message.id for message in errors.values()} == {"taskqueue.E001"}
    assert errors["TASKQUEUE has no key 'MAX_ATEMPTS'."].hint == "Did you mean 'MAX_ATTEMPTS'?"
    assert errors["TASKQUEUE['POOL'] must be 'process' or 'thread', not 'fork'."].hint is None
    assert all(message.is_serious() for message in errors.values())


@pytest.mark.django_db
def test_naive_datetimes_are_an_error() -> None:
    with override_settings(USE_TZ=False):
        (message,) = ours()
    assert (message.id, message.hint) == ("taskqueue.E002", "Set USE_TZ = True.")
    assert message.is_serious()


LOGIN = "rest_framework.authentication.BasicAuthentication"


def test_ways_to_log_in_that_are_not_there_are_errors_where_there_is_an_api(settings: Any) -> None:
    paths = ["nope.Missing", "django.test.Missing", "json.dumps", LOGIN]
    settings.TASKQUEUE = {"API_AUTHENTICATION": paths}
    assert check_settings() == []
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "rest_framework"]
    told = check_settings()
    assert [message.id for message in told] == ["taskqueue.E006"] * 3
    for path, message in zip(paths, told, strict=False):
        assert repr(path) in message.msg


def test_a_database_of_another_vendor_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    other = a_database("django.db.backends.dummy")
    monkeypatch.setattr("taskqueue.declarations.checks.connections", Elsewhere(other))
    (message,) = check_settings()
    assert message.id == "taskqueue.E003"
    assert "PostgreSQL or SQLite" in str(message.hint)
    assert message.is_serious()


@pytest.mark.parametrize("mode", [None, "DEFERRED", "EXCLUSIVE"])
def test_sqlite_that_takes_its_write_lock_late_is_warned_of(
    mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {} if mode is None else {"transaction_mode": mode}
    late = a_database("django.db.backends.sqlite3", OPTIONS=options)
    monkeypatch.setattr("taskqueue.declarations.checks.connections", Elsewhere(late))
    assert check_settings() == []
    assert check_transactions() == check_transactions(databases=["other"]) == []
    (message,) = check_transactions(databases=["default"])
    assert message.id == "taskqueue.W001"
    options = str(message.hint).partition(" = ")[2].rstrip(".")
    well = a_database("django.db.backends.sqlite3", OPTIONS=literal_eval(options))
    monkeypatch.setattr("taskqueue.declarations.checks.connections", Elsewhere(well))
    assert check_transactions(databases=["default"]) == []
    assert "journal_mode=WAL" in options
    assert not message.is_serious()


def test_sqlite_that_takes_it_at_once_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"transaction_mode": "IMMEDIATE"}
    early = a_database("django.db.backends.sqlite3", OPTIONS=options)
    monkeypatch.setattr("taskqueue.declarations.checks.connections", Elsewhere(early))
    assert check_transactions(databases=["default"]) == []


def test_only_who_asks_for_the_database_is_warned_of_its_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = Elsewhere(a_database("django.db.backends.sqlite3"))
    monkeypatch.setattr("taskqueue.declarations.checks.connections", late)
    assert "taskqueue.W001" not in {message.id for message in run_checks()}
    tagged = run_checks(tags=["database"], databases=["default"])
    assert "taskqueue.W001" in {message.id for message in tagged}


def test_the_checks_need_no_database() -> None:
    """Django runs them before the database may be there: a query would fail this test."""
    assert check_settings() == []
    assert connections["default"].vendor in ("postgresql", "sqlite")


@pytest.fixture
def declare_limited() -> Iterator[Callable[..., None]]:
    """Declare tasks that the registry forgets afterwards."""
    names: list[str] = []

    def declare(name: str, **options: Any) -> None:
        def body(a: int = 0) -> None: ...

        names.append(name)
        task(name=name, **options)(body)

    yield declare
    for name in names:
        registry._definitions.pop(name, None)


def test_a_definition_that_needs_a_process_is_reported_if_workers_have_threads(
    declare_limited: Callable[..., None],
) -> None:
    with override_settings(TASKQUEUE={"POOL": "thread"}):
        before = check_pools()
        declare_limited("tests.resize", pool="process")
        declare_limited("tests.call", pool="thread", per_slot=2)
        (warning,) = [message for message in check_pools() if message not in before]
        assert warning.id == "taskqueue.W004"
        assert "leave the tasks of tests.resize out: it has pool='process'" in warning.msg
        assert warning in ours()
    assert check_pools() == []


def test_two_limits_of_one_name_that_differ_are_an_error(
    declare_limited: Callable[..., None],
) -> None:
    declare_limited("one", concurrency=Concurrency(2, name="stripe"))
    declare_limited("two", concurrency=Concurrency(2, name="stripe", key="a"))
    assert check_limits() == []
    declare_limited("three", rate=Rate("100/m", name="stripe"))
    (error,) = check_limits()
    assert (error.id, error.msg) == (
        "taskqueue.E007",
        "Two limits are named 'stripe' and differ: concurrency 2 of one, and rate 100/m of three.",
    )
