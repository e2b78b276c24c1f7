"""Which database the demo project uses: SQLite, or the PostgreSQL that a URL names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from project.postgres import settings_from_url

URL_VARIABLE = "TASKQUEUE_DEMO_DATABASE_URL"
"""The environment variable that holds the URL of a PostgreSQL; empty for SQLite."""

SQLITE_NAME = "db.sqlite3"


def database_settings(directory: Path) -> dict[str, Any]:
    """Return the entry of `DATABASES` that the environment asks for; SQLite's in `directory`."""
    if url := os.environ.get(URL_VARIABLE):
        return settings_from_url(url)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(directory / SQLITE_NAME),
        "USER": "",
        "PASSWORD": "",
        "HOST": "",
        "PORT": "",
        "OPTIONS": {
            # Readers and the one writer of a moment do not wait for each other.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            # A transaction that reads before it writes queues up instead of failing.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }
