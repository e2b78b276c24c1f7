"""The migration can be undone, and applied again."""

from __future__ import annotations

import subprocess
import sys

BACK_AND_FORTH = """
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"],
)
django.setup()
from django.core.management import call_command
from django.db import connection

SOME = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'taskqueue%'"
for target in ([], ["taskqueue", "zero"], []):
    call_command("migrate", *target, verbosity=0)
    print(connection.cursor().execute(SOME).fetchone()[0])
"""


def test_the_migration_is_undone_and_applied_again_on_sqlite() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BACK_AND_FORTH], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    before, undone, again = map(int, done.stdout.split())
    assert (undone, again) == (0, before)
    assert before > 0
