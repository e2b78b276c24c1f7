"""django-q2 with its ORM broker, fifty tasks per poll, one process per slot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("PEERS_APP", "django_q")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_project")

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django_q.brokers import get_broker  # noqa: E402
from django_q.tasks import async_task  # noqa: E402

broker = get_broker()


def prepare() -> None:
    """Its tables."""
    call_command("migrate", verbosity=0)


def worker() -> None:
    """The cluster."""
    command = ("django-admin", "qcluster", "--pythonpath", os.path.dirname(__file__) or ".")
    os.execvp(command[0], command)


class Client:
    """The broker itself."""

    def one(self, body: str, argument: Any) -> None:
        """Enqueue one."""
        async_task(f"django_app.tasks.{body}", argument, broker=broker)

    def many(self, body: str, arguments: list[Any]) -> None:
        """Enqueue one by one in one transaction: it has no bulk form."""
        with transaction.atomic():
            for argument in arguments:
                async_task(f"django_app.tasks.{body}", argument, broker=broker)


@contextmanager
def client() -> Iterator[Client]:
    """A client over Django's connection."""
    yield Client()
