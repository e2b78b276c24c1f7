"""The database of one demo: made new, reached from this process and from those it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connections

from project.databases import URL_VARIABLE, database_settings
from project.demo.state import POSTGRES_NAME
from project.postgres import SUPERUSER, Server

DATABASE_NAME = "demo"
USERNAME = "admin"
PASSWORD = "taskqueue-demo"


@contextmanager
def sqlite(directory: Path) -> Iterator[None]:
    """Use a SQLite file in `directory`."""
    with _prepared("", directory):
        yield


@contextmanager
def postgresql(directory: Path) -> Iterator[None]:
    """Run a PostgreSQL of its own with its data in `directory`, and use it."""
    with Server(directory=directory / POSTGRES_NAME) as server:
        server.create_database(DATABASE_NAME)
        address = f"{SUPERUSER}@{server.host}:{server.port}"
        with _prepared(f"postgresql://{address}/{DATABASE_NAME}", directory):
            yield


@contextmanager
def _prepared(url: str, directory: Path) -> Iterator[None]:
    """Use the database, with its tables and a superuser, until the end."""
    _turn_to(url, directory)
    try:
        call_command("migrate", verbosity=0, interactive=False)
        get_user_model().objects.create_superuser(USERNAME, password=PASSWORD)
        yield
    finally:
        connections.close_all()


def _turn_to(url: str, directory: Path) -> None:
    """Use another database than the one that the settings named when they were read."""
    os.environ[URL_VARIABLE] = url  # For the processes started from here on.
    connections.close_all()
    connections.databases["default"].update(database_settings(directory))
    for alias in connections:
        with suppress(AttributeError):  # Not opened yet.
            del connections[alias]
