"""`manage.py taskqueue …` where the database cannot do it: one line, and exit code 1."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from taskqueue.management.cli import SUBCOMMANDS
from tests.worker_process import ROOT

UNREACHABLE = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "none",
    "HOST": "127.0.0.1",
    "PORT": "1",
}
CONFIGURE = """
import json, os, sys
import django
from django.conf import settings
from django.core.management import execute_from_command_line
settings.configure(
    DATABASES={"default": json.loads(sys.argv[1])},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"],
    USE_TZ=True,
)
from taskqueue import task
@task(name="shop.tasks.send")
def send(): pass
"""
SCRIPT = f"""
{CONFIGURE}
execute_from_command_line(["manage.py", *sys.argv[2:]])
"""
EACH_SCRIPT = f"""
import gc
from importlib import import_module
from pkgutil import walk_packages
{CONFIGURE}
django.setup()
for name in ("taskqueue.management.cli", "taskqueue.engine", "taskqueue.monitoring"):
    package = import_module(name)
    for module in walk_packages(package.__path__, name + "."):
        import_module(module.name)
gc.freeze()
codes = {{}}
for name, arguments in json.loads(sys.argv[2]).items():
    child = os.fork()
    if not child:
        for number, path, mode in ((0, "input", "r"), (1, os.devnull, "w"), (2, name, "w")):
            with open(path, mode) as file:
                os.dup2(file.fileno(), number)
        execute_from_command_line(["manage.py", "taskqueue", name, *arguments])
        sys.exit()
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(codes))
"""
"""Each in a copy of a process that has loaded what commands import, which is most of their cost.

The rest of it was that each copy looked at its end whether all of that is garbage.
"""
ID = str(uuid4())
ARGUMENTS = {
    "list": [],
    "show": [ID],
    "why": [ID],
    "enqueue": ["shop.tasks.send"],
    "enqueue-many": ["-"],
    "cancel": [ID],
    "retry": [ID, "--args", "[]"],
    "stop": [ID],
    "run-now": [ID],
    "reschedule": [ID, "--in", "10m"],
    "update": [ID, "--set", "priority=5"],
    "duplicate": [ID],
    "delete": [ID],
    "pause": ["mail"],
    "resume": ["mail"],
    "release": [ID],
    "pauses": [],
    "queues": [],
    "limits": [],
    "webhooks": [],
    "workers": [],
    "schedules": [],
    "operations": [],
    "events": [],
    "alerts": [],
    "audit": [],
    "failures": [],
    "export": ["--all"],
    "tasks": [],
    "logs": ["01a2022f-c607-74e3-a122-9f8b03c681f8"],
    "groups": [],
    "workflows": [],
    "roles": [],
    "stats": [],
    "prune": [],
    "doctor": [],
    "top": ["--once"],
    "health": [],
}
INPUT = '{"name": "shop.tasks.send"}\n'


def manage(database: dict[str, Any], *arguments: str) -> tuple[int, str]:
    """The exit code, and what went to stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(database), *arguments],
        capture_output=True,
        text=True,
        input=INPUT,
        timeout=120,
    )
    return ended.returncode, ended.stderr.rstrip("\n")


def sqlite_at(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {"timeout": 0.1, "transaction_mode": "IMMEDIATE"},
    }


def test_every_subcommand_is_asked() -> None:
    assert {subcommand.name for subcommand in SUBCOMMANDS} == ARGUMENTS.keys()


@pytest.fixture(scope="module")
def without_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """The exit code of each subcommand, and what went to stderr, on a database without tables."""
    folder = tmp_path_factory.mktemp("without_tables")
    (folder / "input").write_text(INPUT)
    database = json.dumps(sqlite_at(folder / "db"))
    ended = subprocess.run(
        [sys.executable, "-c", EACH_SCRIPT, database, json.dumps(ARGUMENTS)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    codes = json.loads(ended.stdout)
    return {name: (code, (folder / name).read_text().rstrip()) for name, code in codes.items()}


@pytest.mark.slow
@pytest.mark.parametrize("subcommand", sorted(ARGUMENTS))
def test_a_database_without_tables_is_said_to_want_a_migration(
    subcommand: str, without_tables: dict[str, tuple[int, str]]
) -> None:
    code, said = without_tables[subcommand]
    assert (code, "\n" in said) == (1, False), said
    assert "Run manage.py migrate" in said or subcommand == "doctor"  # It says so in its table.


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_database_that_is_not_there_is_said_to_be_in_trouble(kind: str, tmp_path: Path) -> None:
    database = UNREACHABLE if kind == "postgresql" else sqlite_at(tmp_path / "nowhere" / "db")
    code, said = manage(database, "taskqueue", "workers")
    assert (code, said.startswith("CommandError: The database failed: ")) == (1, True)
    assert "\n" not in said


@pytest.mark.slow
def test_a_write_lock_that_somebody_holds_is_said_to_be_held(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path / "db")
    assert manage(database, "migrate", "-v0")[0] == 0
    holder = sqlite3.connect(tmp_path / "db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        for arguments in (["stop", ID], ["pause", "mail"]):
            code, said = manage(database, "taskqueue", *arguments)
            assert (code, "\n" in said) == (1, False)
            assert "busy: another transaction holds its write lock, perhaps an atomic task" in said
    finally:
        holder.close()
