"""taskqueue: one child process per slot; `def` bodies, or `async def` ones (PEERS_BODIES=async)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("PEERS_APP", "taskqueue")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_project")

import django

django.setup()

from common import SLOTS  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django_app import tasks  # noqa: E402


def prepare() -> None:
    """Its tables."""
    call_command("migrate", verbosity=0)


def worker() -> None:
    """The command, with as many children as slots."""
    command = (
        *("django-admin", "runworker", "--noreload", "--pool", "process"),
        *("--concurrency", str(SLOTS), "--pythonpath", os.path.dirname(__file__)),
    )
    os.execvp(command[0], command)


class Client:
    """Django's connection."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        getattr(tasks, body).enqueue(argument)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue in bulk."""
        getattr(tasks, body).enqueue_many([((each,), {}) for each in arguments])


@contextmanager
def client() -> Iterator[Client]:
    """A client over Django's connection."""
    yield Client()
