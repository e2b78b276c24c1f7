"""django-tasks-db under Django's own tasks: a worker runs one task at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("PEERS_APP", "django_tasks_db")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_project")

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django_app import tasks  # noqa: E402


def prepare() -> None:
    """Its tables."""
    call_command("migrate", verbosity=0)


def worker() -> None:
    """The command, with the shortest poll that it takes."""
    command = (
        *("django-admin", "db_worker", "--interval", "0.01", "--no-startup-delay", "-v", "0"),
        *("--pythonpath", os.path.dirname(os.path.abspath(__file__))),
    )
    os.execvp(command[0], command)


class Client:
    """Django's connection."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        getattr(tasks, body).enqueue(argument)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue one by one in one transaction: it has no bulk form."""
        with transaction.atomic():
            for argument in arguments:
                getattr(tasks, body).enqueue(argument)


@contextmanager
def client() -> Iterator[Client]:
    """A client over Django's connection."""
    yield Client()
