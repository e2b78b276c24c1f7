"""Imports of a worker before its first claim: each delays its first task."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

# The engine's rooms that only the duties need.
OF_THE_DUTIES = {
    "taskqueue.worker.duties",
    "taskqueue.engine.workflows.rounds",
    "taskqueue.engine.operations.serving",
    "taskqueue.engine.schedules.serving",
    "taskqueue.engine.control.task_verbs",
    "taskqueue.engine.pruning",
}
# What tasks and enqueues need: of a worker's processes only those that import the tasks.
OF_THE_TASKS = {
    "taskqueue.definitions",
    "taskqueue.declarations.definition",
    "taskqueue.engine.specs",
}
# What only workflows and schedules need: tasks that are in none do without.
OF_FEW_TASKS = {
    "taskqueue.declarations.workflows.canvas",
    "taskqueue.declarations.scheduled",
    "taskqueue.rules",
}
# What bringing the declarations to the database needs: a first body does without.
OF_DECLARING = {
    "taskqueue.worker.bodies.declaring",
    "taskqueue.engine.schedules.syncing",
    "taskqueue.engine.enqueue",
}


BARE = """
import sys
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"],
    USE_TZ=True,
)
django.setup()
__import__(sys.argv[1])
print(*sys.modules.keys() & set(sys.argv[2:]))
"""


def _imported(module: str, *, of: Iterable[str]) -> set[str]:
    """Those that a new process has imported by the time it has imported that module."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, module, *of], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "later"),
    [
        # The template is copied first: it imports the tasks while the worker imports the rest.
        ("taskqueue.management.commands.runworker", {"taskqueue.worker.supervisor"}),
        (
            "taskqueue.management.working",
            {*OF_THE_DUTIES, *OF_THE_TASKS, *OF_FEW_TASKS, *OF_DECLARING},
        ),
        ("taskqueue.worker.bodies.orders", {*OF_FEW_TASKS, *OF_DECLARING}),
        ("taskqueue.tasks", OF_FEW_TASKS),
    ],
)
def test_modules_needed_later_are_not_imported_at_start(module: str, later: set[str]) -> None:
    assert _imported(module, of=later) == set()


def test_the_duties_need_what_is_left_for_them() -> None:
    assert _imported("taskqueue.worker.duties", of=OF_THE_DUTIES) == OF_THE_DUTIES
    assert _imported("taskqueue.worker.bodies.declaring", of=OF_DECLARING) == OF_DECLARING
    assert _imported("taskqueue.definitions", of=OF_THE_TASKS) == OF_THE_TASKS - {
        "taskqueue.engine.specs"
    }
    assert _imported("taskqueue.workflows", of=OF_FEW_TASKS) == OF_FEW_TASKS
