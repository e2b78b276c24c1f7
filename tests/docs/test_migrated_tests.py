"""The guides to migrate from other task queues: the tests that they show pass."""

from __future__ import annotations

import unittest
from typing import Any

import pytest
from django.core.cache import cache
from django.test import TestCase
from pytest_django.plugin import DjangoDbBlocker

from tests.documents import Page, page

AFTER = "shop/tasks.py, after"
TESTS = "shop/tests.py, after"


@pytest.mark.parametrize(
    ("name", "tasks", "title"),
    [
        ("migrate-from-celery.md", AFTER, TESTS),
        ("migrate-from-celery.md", "base, after", "shop/test_billing.py, after"),
        ("migrate-from-rq.md", AFTER, TESTS),
        ("migrate-from-django-q2.md", AFTER, TESTS),
    ],
)
def test_they_pass(
    name: str,
    tasks: str,
    title: str,
    names: dict[str, Any],
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> None:
    cache.clear()
    exec(page(name).titled(tasks), names)
    # Without a fixture's transaction: Django's test cases close the connection at their end.
    with django_db_blocker.unblock():
        result = results_of(page(name), title)
    assert result.testsRun
    assert result.errors + result.failures == []


def results_of(guide: Page, title: str) -> unittest.TestResult:
    """Run the test cases of a guide."""
    module: dict[str, Any] = {"__name__": "shop.tests"}
    exec(guide.titled(title), module)
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    cases = [each for each in module.values() if isinstance(each, type)]
    own = [case for case in cases if issubclass(case, TestCase) and case is not TestCase]
    result = unittest.TestResult()
    unittest.TestSuite(map(load, own)).run(result)
    return result
