"""Saved searches of a project whose users are in a database of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from project.postgres import Server
from tests.worker_process import ROOT

# In a process of its own: the databases of the tests are one.
PROJECT = """
import json
import logging
import sys
from contextlib import contextmanager
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

class PeopleElsewhere:
    def db_for_read(self, model, **hints):
        return "people" if model._meta.app_label == "auth" else None

    db_for_write = db_for_read

settings.configure(
    DATABASES=json.loads(sys.argv[1]),
    DATABASE_ROUTERS=[PeopleElsewhere()],
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"],
    USE_TZ=True,
)
django.setup()
logging.basicConfig(format="%(message)s", stream=sys.stdout)

from django.contrib.auth.models import User
from django.db import connection, connections
from taskqueue.engine.search_owners import SearchPruning
from taskqueue.models import SavedSearch

call_command("migrate", verbosity=0)
for app in ("contenttypes", "auth"):
    call_command("migrate", app, database="people", verbosity=0)
users = [User.objects.create(username=name) for name in ("stays", "goes")]
for user in users:
    SavedSearch.objects.create(name=user.username, query="", owner=f"auth.user:{user.pk}")

def show(when):
    print(when, *SavedSearch.objects.order_by("name").values_list("name", flat=True))

@contextmanager
def away(alias):
    connections[alias].close()
    there = connections[alias].settings_dict
    if connections[alias].vendor == "sqlite":
        file = Path(there["NAME"])
        moved = file.rename(file.with_name("away"))
        file.mkdir()
        yield
        file.rmdir()
        moved.rename(file)
        return
    import psycopg

    address = {"host": there["HOST"], "port": there["PORT"], "user": there["USER"]}
    address["password"] = there["PASSWORD"] or None
    name = there["NAME"]
    with psycopg.connect(**address, dbname="postgres", autocommit=True) as server:
        server.execute(f"ALTER DATABASE {name} RENAME TO moved")
        yield
        server.execute(f"ALTER DATABASE moved RENAME TO {name}")

# Its owner is deleted while the database of the searches is away.
with away("default"):
    users[1].delete()
with away("people"):
    SearchPruning().step(connection)
    show("away:")
SearchPruning().step(connection)
show("back:")
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Two, of which one is of the users."""
    names = ("default", "people")
    if request.param == "sqlite":
        engine = "django.db.backends.sqlite3"
        yield {name: {"ENGINE": engine, "NAME": str(tmp_path / name)} for name in names}
        return
    with Server() as server:
        for name in names:
            server.create_database(f"of_{name}")
        yield {name: server.django_settings(f"of_{name}") for name in names}


def test_private_searches_follow_users_of_another_database(databases: dict[str, Any]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROJECT, json.dumps(databases)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        timeout=120,
    )

    assert done.stdout.splitlines() == [
        "Users cannot be read database=people error=OperationalError",
        "away: goes stays",
        "back: stays",
    ], done.stdout
