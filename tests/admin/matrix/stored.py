"""What the database holds, to tell whether anything was changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db import connection

WRITE = re.compile(
    r"\s*(?:WITH\b.*?\b)?(?:INSERT|UPDATE|DELETE|TRUNCATE|ALTER|CREATE|DROP)\b", re.S
)
PLACES = "taskqueue_export"
"""An export notes that it runs, since few may run at a time; nobody sees these rows."""
OURS = re.compile(r'"?(?:taskqueue_\w+|django_admin_log|auth_\w+)"?')


def stored() -> dict[str, list[Any]]:
    """Every row of this app, and of the admin's own history."""
    models = [*apps.get_app_config("taskqueue").get_models(), LogEntry]
    return {
        model.__name__: sorted(map(repr, model._default_manager.values_list()))
        for model in models
        if not model._meta.proxy and model._meta.db_table != PLACES
    }


@contextmanager
def no_writes() -> Iterator[None]:
    """Fail at a statement that changes rows of ours, also where another one undoes that."""

    def check(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if WRITE.match(sql) and PLACES not in sql and OURS.search(sql):
            raise AssertionError(f"It writes: {sql}")
        return execute(sql, *rest)

    with connection.execute_wrapper(check):
        yield
