"""Run Django's own tests of task backends against ours: `python -m tests.conformance`.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_TEST_DATABASE` | `sqlite` (the default) or `postgresql` |
| `TASKQUEUE_DJANGO_SOURCE` | an unpacked source distribution of Django; otherwise pip fetches it |
| `TASKQUEUE_NO_SKIP` | with 1, tests that cannot be had are a failure |

Neither the admin nor the REST framework is installed in this project.
"""

from __future__ import annotations

import importlib
import os
import sys
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from django.conf import settings
from django.test.utils import (
    override_settings,
    setup_databases,
    setup_test_environment,
    teardown_databases,
    teardown_test_environment,
)

from project.postgres import Server, settings_from_url
from tests.conformance.left_out import LEFT_OUT, LEFT_OUT_OF_BACKPORT
from tests.conformance.source import Unobtainable, tests_of_django

BACKEND = "taskqueue.backend.TaskQueueBackend"
DUMMY = "django.tasks.backends.dummy.DummyBackend"
IMMEDIATE = "django.tasks.backends.immediate.ImmediateBackend"
MODULES = ("tasks.test_tasks", "tasks.test_dummy_backend")
EXPECTED = {(6, 1): (56, 13)}
"""How many tests Django has, and how many of them are left out, where that is known."""
TESTS_FOR_BACKPORT = "6.1.3"
IS_BACKPORT = django.VERSION < (6, 0)


def main() -> int:
    """Run the tests; the exit code."""
    version = TESTS_FOR_BACKPORT if IS_BACKPORT else django.get_version()
    try:
        folder = tests_of_django(version)
    except Unobtainable as reason:
        print(f"Skipped: the tests of Django {version} cannot be had. {reason}")
        return 1 if os.environ.get("TASKQUEUE_NO_SKIP") == "1" else 0
    with database() as settings_of_database:
        settings.configure(
            SECRET_KEY="not a secret",
            INSTALLED_APPS=["taskqueue"],
            DATABASES={"default": settings_of_database},
            TASKS={"default": {"BACKEND": BACKEND, "QUEUES": []}},
            USE_TZ=True,
        )
        if IS_BACKPORT:
            from tests.conformance.backport import stand_in

            stand_in()
        django.setup()
        sys.path.append(str(folder))  # Last: its folders have names of all sorts.
        return run(version)


@contextmanager
def database() -> Iterator[dict[str, Any]]:
    """The settings of the database that the environment asks for."""
    with ExitStack() as stack:
        if os.environ.get("TASKQUEUE_TEST_DATABASE", "sqlite") == "sqlite":
            folder = Path(stack.enter_context(TemporaryDirectory()))
            yield {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / "conformance.sqlite3",
                "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
                # A file: some tests read in a thread, and so on a connection, of their own.
                "TEST": {"NAME": folder / "test.sqlite3"},
            }
        elif url := os.environ.get("TASKQUEUE_TEST_DATABASE_URL"):
            yield settings_from_url(url)
        else:
            yield stack.enter_context(Server()).django_settings("conformance")


def run(version: str) -> int:
    suite = unittest.TestSuite()
    total, left_out = 0, 0
    for django_class in django_classes():
        names = unittest.TestLoader().getTestCaseNames(django_class)
        without = reasons(django_class.__name__)
        if version.startswith("6.1") and not without.keys() <= set(names):
            raise SystemExit(f"Django has no longer: {sorted(without.keys() - set(names))}")
        total += len(names)
        left_out += len(without.keys() & set(names))
        if kept := [name for name in names if name not in without]:
            suite.addTests(map(against_our_backend(django_class), kept))
    expected = EXPECTED.get(django.VERSION[:2])
    if expected and expected != (total, left_out):
        raise SystemExit(f"Expected {expected} tests and left out, found {(total, left_out)}.")
    result = run_on_test_database(suite)
    where = settings.DATABASES["default"]["ENGINE"].rpartition(".")[2]
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - failed
    print(
        f"Django {django.get_version()}, {where}: of Django {version}'s {total} tests of task "
        f"backends, {left_out} are left out; {passed} of {result.testsRun} passed."
    )
    return 1 if failed or result.skipped else 0


def django_classes() -> Iterator[type[unittest.TestCase]]:
    for name in MODULES:
        module = importlib.import_module(name)
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, unittest.TestCase)
                and value.__module__ == name
            ):
                yield value


def reasons(class_name: str) -> dict[str, str]:
    """Which tests of a class are left out, and why."""
    found = dict(LEFT_OUT.get(class_name, {}))
    return found | LEFT_OUT_OF_BACKPORT.get(class_name, {}) if IS_BACKPORT else found


def against_our_backend(django_class: Any) -> Any:
    """The class with our backend in place of the dummy, and a database."""
    from django.test import TransactionTestCase

    class Ours(TransactionTestCase, django_class):  # type: ignore[misc]
        available_apps = None

        def setUp(self) -> None:
            """Nothing: the tables are empty."""

    Ours.__name__ = Ours.__qualname__ = django_class.__name__
    tasks = deepcopy((django_class._overridden_settings or {}).get("TASKS", settings.TASKS))
    for backend in tasks.values():
        if backend["BACKEND"] == DUMMY:
            backend["BACKEND"] = BACKEND
        elif backend["BACKEND"] == IMMEDIATE and IS_BACKPORT:
            backend["BACKEND"] = IMMEDIATE.replace("django.tasks", "django_tasks")
    return override_settings(TASKS=tasks)(Ours)


def run_on_test_database(suite: unittest.TestSuite) -> unittest.TestResult:
    setup_test_environment()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        return unittest.TextTestRunner(verbosity=1, warnings="error").run(suite)
    finally:
        teardown_databases(databases, verbosity=0)
        teardown_test_environment()


if __name__ == "__main__":
    sys.exit(main())
