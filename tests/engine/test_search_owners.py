"""Saved searches of a project whose users are in a database of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.worker_process import ROOT

# In a process of its own: the databases of the tests are one.
PROJECT = """
import logging
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

folder = Path(sys.argv[1])
people = folder / "people.sqlite3"

class PeopleElsewhere:
    def db_for_read(self, model, **hints):
        return "people" if model._meta.app_label == "auth" else None

    db_for_write = db_for_read

settings.configure(
    DATABASES={
        name: {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / f"{name}.sqlite3")}
        for name in ("default", "people")
    },
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

# Its owner is deleted while the database of the searches is away.
connection.close()
searches = folder / "default.sqlite3"
searches.rename(folder / "away")
searches.mkdir()
users[1].delete()
searches.rmdir()
(folder / "away").rename(searches)

connections["people"].close()
people.rename(folder / "away")
people.mkdir()
SearchPruning().step(connection)
show("away:")
people.rmdir()
(folder / "away").rename(people)
SearchPruning().step(connection)
show("back:")
"""


def test_private_searches_follow_users_of_another_database(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROJECT, str(tmp_path)],
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
