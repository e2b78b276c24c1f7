"""The shape of the package: imports run downwards only, and importing it costs no models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import LAYERS, PACKAGE, violations
from tests.worker_process import ROOT


def test_imports_of_the_package_run_downwards_only() -> None:
    assert violations(ROOT / PACKAGE) == []


def test_importing_taskqueue_needs_no_settings_and_loads_no_models() -> None:
    script = (
        "import sys, taskqueue; print([m for m in sys.modules if m.startswith('taskqueue.models')])"
    )
    assert run("-c", script) == "[]"


def test_the_migrations_match_the_models() -> None:
    output = run(
        "-m", "django", "makemigrations", "--check", "--dry-run", settings="tests.settings"
    )
    assert "No changes detected" in output


# The checker itself, on made-up packages.

ALLOWED = [
    ("engine/enqueue.py", "from taskqueue.models import Task"),
    ("engine/enqueue.py", "from taskqueue.engine.rows import Claimed"),
    ("engine/enqueue.py", "from . import rows"),
    ("engine/enqueue.py", "import django, psycopg"),
    ("worker/pool.py", "from taskqueue.engine import claim"),
    ("engine/record.py", "from taskqueue.engine import ends"),
    ("engine/control/tasks.py", "from taskqueue.engine.record import record"),
    ("engine/sqlite/claim.py", "from taskqueue.engine.sqlite.values import clock"),
    ("worker/bodies/slots.py", "from taskqueue.worker.frames import Frame"),
    ("worker/child.py", "def f():\n    from taskqueue.worker.bodies.orders import OrderRunner"),
    ("worker/pool.py", "from taskqueue.worker import frames"),
    ("admin/pages.py", "from taskqueue import models, task"),
    ("management/commands/runworker.py", "from ...worker import pool"),
    ("core/states.py", "import random\nfrom taskqueue.exceptions import Duration"),
    ("definitions.py", "def enqueue():\n    from taskqueue.results import enqueue"),
    ("definitions.py", "if TYPE_CHECKING:\n    from taskqueue.results import TaskResult"),
]
FORBIDDEN = [
    ("models/task.py", "from taskqueue.engine import claim", "models imports engine"),
    ("models/task.py", "from taskqueue import engine", "models imports engine"),
    ("models/task.py", "import taskqueue.engine.claim as c", "models imports engine"),
    ("models/task.py", "from .. import engine", "models imports engine"),
    ("models/task.py", "from ..engine import claim", "models imports engine"),
    ("engine/postgresql/claim.py", "from ...worker import pool", "engine imports worker"),
    ("engine/enqueue.py", "def f():\n    import taskqueue.worker", "engine imports worker"),
    (
        "engine/enqueue.py",
        "if TYPE_CHECKING:\n    import taskqueue.worker",
        "engine imports worker",
    ),
    ("worker/pool.py", "from taskqueue.admin import pages", "worker imports admin"),
    ("monitoring/reading.py", "from taskqueue import worker", "monitoring imports worker"),
    ("webhooks/body.py", "from taskqueue import tasks", "webhooks imports tasks"),
    ("admin/pages.py", "from taskqueue.api import views", "admin imports api"),
    ("api/views.py", "from taskqueue.management.commands import x", "api imports management"),
    ("backend.py", "import taskqueue.testing", "backend imports testing"),
    ("declarations/options.py", "from taskqueue.models import Task", "declarations imports models"),
    (
        "declarations/options.py",
        "class A:\n    import taskqueue.models",
        "declarations imports models",
    ),
    ("conf.py", "def f():\n    from taskqueue.models import Task", "conf imports models"),
    ("core/states.py", "from django.db import models", "core imports django"),
    ("core/retries.py", "def f():\n    import django", "core imports django"),
    ("core/outcomes.py", "from taskqueue import conf", "core imports conf"),
    ("core/outcomes.py", "from taskqueue import task", "core imports __init__"),
    ("engine/rows.py", "from taskqueue.engine import record", "engine/rows imports engine/record"),
    (
        "engine/sqlite/claim.py",
        "from taskqueue.engine.dialect import dialect_for",
        "engine/sqlite imports engine/dialect",
    ),
    (
        "engine/sqlite/claim.py",
        "from taskqueue.engine.postgresql import claim",
        "engine/sqlite imports engine/postgresql, which stands beside it",
    ),
    (
        "engine/record.py",
        "def f():\n    from taskqueue.engine.control.tasks import cancel",
        "engine/record imports engine/control",
    ),
    (
        "worker/bodies/slots.py",
        "from taskqueue.worker.jobs import Job",
        "worker/bodies imports worker/jobs, which is for the parent",
    ),
    (
        "worker/jobs.py",
        "from taskqueue.worker.bodies.order import Order",
        "worker/jobs imports worker/bodies, which is for children",
    ),
    (
        "worker/frames.py",
        "from taskqueue.worker import bodies",
        "worker/frames imports worker/bodies, which stands above it",
    ),
    ("engine/odd.py", "", "engine/odd is on no floor"),
    ("utils.py", "", "utils is in no layer"),
    ("helpers/text.py", "", "helpers is in no layer"),
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with every part that the layers name, all of them empty."""
    root = tmp_path / PACKAGE
    for layer in LAYERS:
        for part in layer.parts - {"__init__"}:
            (root / part).mkdir(parents=True)
            (root / part / "__init__.py").touch()
    (root / "__init__.py").touch()
    return root


def put(package: Path, path: str, source: str) -> None:
    (package / path).parent.mkdir(parents=True, exist_ok=True)
    (package / path).write_text(source)


@pytest.mark.parametrize(("path", "source"), ALLOWED)
def test_an_import_downwards_is_allowed(package: Path, path: str, source: str) -> None:
    put(package, path, source)
    assert violations(package) == []


@pytest.mark.parametrize(("path", "source", "complaint"), FORBIDDEN)
def test_an_import_that_breaks_the_layers_is_found(
    package: Path, path: str, source: str, complaint: str
) -> None:
    put(package, path, source)
    [violation] = violations(package)
    assert complaint in violation


def run(*arguments: str, settings: str = "") -> str:
    """Run Python with `arguments`, in a process that has seen nothing of this one."""
    environment = {key: value for key, value in os.environ.items() if "DJANGO" not in key}
    environment |= {"DJANGO_SETTINGS_MODULE": settings} if settings else {}
    process = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        env={**environment, "TASKQUEUE_TEST_DATABASE": "sqlite"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.strip()
