"""What the database holds, to tell whether anything was changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models import Model

from taskqueue.models import Audit
from tests.admin.everything import Everything
from tests.admin.matrix.roles import Clients

VERBS = "INSERT|UPDATE|DELETE|MERGE|COPY|CALL|TRUNCATE|ALTER|CREATE|DROP"
WRITE = re.compile(rf"\s*(?:WITH\b.*?\b)?(?:{VERBS})\b", re.S)
PLACES = "taskqueue_export"
"""An export notes that it runs, since few may run at a time; nobody sees these rows."""
OURS = re.compile(r'"?(?:taskqueue_\w+|django_admin_log|auth_\w+)"?')


Stored = dict[type[Model], list[str]]


def stored() -> Stored:
    """Every row of this app, and of the admin's own history."""
    models = [*apps.get_app_config("taskqueue").get_models(), LogEntry]
    return {
        model: _rows(model)
        for model in models
        if not model._meta.proxy and model._meta.db_table != PLACES
    }


def has_changed(before: Stored) -> bool:
    """Whether any row differs. What people do is audited: that is looked at first."""
    return any(_rows(model) != before[model] for model in (Audit, *before))


def _rows(model: type[Model]) -> list[str]:
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return sorted(map(repr, cursor.fetchall()))


@contextmanager
def no_writes() -> Iterator[None]:
    """Fail at a statement that changes rows of ours, also where another one undoes that."""

    def check(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if WRITE.match(sql) and PLACES not in sql and OURS.search(sql):
            raise AssertionError(f"It writes: {sql}")
        return execute(sql, *rest)

    with connection.execute_wrapper(check):
        yield


@pytest.fixture(scope="module")
def before(made: Everything, clients: Clients) -> Stored:
    """All rows as the module's tests find them. Each compares before its rows are rolled back."""
    return stored()
