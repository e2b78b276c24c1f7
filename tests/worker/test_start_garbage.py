"""A worker collects no garbage while Django is set up, and does so in all its processes after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker_process import ROOT

WORDS = ("models", "set up", "worker", "body")
TASKS = """
import gc
from taskqueue import task

@task
def collects() -> bool:
    return gc.isenabled()
"""
MODELS = """
import gc
print("models", gc.isenabled())
"""
STARTED = """
import gc, sys
if sys.argv[2] == "off":
    gc.disable()
import django
from django.conf import settings
from django.core.management import call_command, execute_from_command_line

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue", "shop"],
    USE_TZ=True,
)
sys.argv[:] = ["manage.py", sys.argv[1]]
django.setup()
print("set up", gc.isenabled())
call_command("migrate", verbosity=0)
from shop.tasks import collects
result = collects.enqueue()
execute_from_command_line(["manage.py", "runworker", "--drain"])
print("worker", gc.isenabled())
print("body", result.wait(0).return_value)
"""


@pytest.mark.parametrize(
    ("command", "before", "told"),
    [
        ("runworker", "on", ["models False", "set up True", "worker True", "body True"]),
        ("migrate", "on", ["models True", "set up True", "worker True", "body True"]),
        ("runworker", "off", ["models False", "set up False", "worker False", "body False"]),
    ],
)
def test_garbage_is_collected_once_the_worker_is_set_up(
    tmp_path: Path, command: str, before: str, told: list[str]
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/models.py").write_text(MODELS)
    (tmp_path / "shop/tasks.py").write_text(TASKS)
    done = subprocess.run(
        [sys.executable, "-c", STARTED, command, before],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(WORDS)]
    assert said == told, done.stderr
