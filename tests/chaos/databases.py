"""A fresh, migrated database for each run, with its own server on PostgreSQL.

A template is made once, and each run works on a copy, so a run may do anything to its server.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from project.postgres import Server

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "chaos"
MIGRATE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.chaos.changes import install_changes
install_changes()
"""


class Database:
    """A database in a folder; opened by `with`."""

    vendor = ""
    server: Server | None = None

    def __init__(self, folder: Path, *, server_settings: Mapping[str, Any] | None = None) -> None:
        self.folder = folder

    @property
    def connection(self) -> dict[str, str]:
        """What Django needs to open it."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """In which `tests.chaos.settings` opens it."""
        return {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "TASKQUEUE_TEST_DATABASE": self.vendor,
            "TASKQUEUE_TEST_CONNECTION": json.dumps(self.connection),
        }

    def move(self, folder: Path) -> None:
        """Move the files to another folder, where they can be moved."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class PostgreSQL(Database):
    """A server on the data in `folder`."""

    vendor = "postgresql"

    def __init__(self, folder: Path, *, server_settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder)
        self.server: Server = Server(
            directory=folder / "data", settings={"autovacuum_naptime": 1, **(server_settings or {})}
        )

    @property
    def connection(self) -> dict[str, str]:
        keys = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
        settings = self.server.django_settings(NAME)
        return {key: str(settings[key]) for key in keys}

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self.server.close()
            return
        self.server.kill()
        self.server.close()


class SQLite(Database):
    """A file in `folder`."""

    vendor = "sqlite"

    def __init__(self, folder: Path, *, server_settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder)
        self._data = folder / "data"

    @property
    def connection(self) -> dict[str, str]:
        return {"NAME": str(self._data / "db.sqlite3")}

    def move(self, folder: Path) -> None:
        moved = folder / "database"
        shutil.move(self._data, moved)
        self._data = moved

    def __enter__(self) -> Self:
        self._data.mkdir(exist_ok=True)
        return self


DATABASES: dict[str, type[Database]] = {"postgresql": PostgreSQL, "sqlite": SQLite}


def address_of(database: Database) -> str:
    """A PostgreSQL database as psycopg takes it."""
    address = database.connection
    return (
        f"host={address['HOST']} port={address['PORT']} user={address['USER']}"
        f" dbname={address['NAME']} connect_timeout=5"
    )


def make_template(vendor: str, folder: Path) -> None:
    """Fill `folder` with a migrated database that writes down every change."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    with DATABASES[vendor](folder) as database:
        if database.server is not None:
            database.server.create_database(NAME)
        subprocess.run(
            [sys.executable, "-c", MIGRATE],
            cwd=ROOT,
            env={**os.environ, **database.environment()},
            check=True,
        )


def copy_template(template: Path, folder: Path) -> None:
    """Copy the data, with their owner, who is not root on PostgreSQL."""
    data = (template / "data").resolve()
    subprocess.run(["cp", "-a", str(data), str(folder / "data")], check=True)


def remove(folder: Path) -> None:
    """Remove a folder, and what its data led to where they had to lie elsewhere."""
    data = folder / "data"
    if data.is_symlink():
        shutil.rmtree(data.resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
