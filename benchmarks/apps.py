"""The benchmarks as an app, so that workers find its tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class BenchmarksConfig(AppConfig):
    """Counts statements where it is asked to."""

    name = "benchmarks"

    def ready(self) -> None:
        """Have every connection of this process count its statements in a file."""
        path = os.environ.get("TASKQUEUE_BENCHMARK_STATEMENTS")
        if path:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            connection_created.connect(_counting_in(file), weak=False)


def _counting_in(file: int) -> Callable[..., None]:
    """A receiver. One byte a statement survives any end of a process, and needs no lock."""

    def count(execute: Callable[..., Any], *arguments: Any) -> Any:
        os.write(file, b".")
        return execute(*arguments)

    def on_connection(*, connection: Any, **_: Any) -> None:
        if count not in connection.execute_wrappers:
            connection.execute_wrappers.append(count)

    return on_connection
