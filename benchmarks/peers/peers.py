"""The queues that are measured, their packages, and the environment with these packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.processes import ROOT

ENVIRONMENT = ROOT / ".peers"
PACKAGES = (
    *("asyncpg", "celery[redis]", "django", "django-q2", "django-tasks-db", "dramatiq[redis]"),
    *("huey", "oban", "pgqueuer", "procrastinate", "psutil", "psycopg[binary,pool]", "redis"),
    *("rq", "setuptools", "uvloop"),
)
LIBRARIES = ("asyncpg", "django", "psycopg", "redis", "uvloop")
"""The libraries on which the queues stand, and which decide how fast they are."""
LEAST_PYTHON = (3, 12)
"""The minimum that the most demanding of them needs."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A queue at its best documented settings; its driver's docstring says which."""

    name: str
    driver: str
    package: str
    broker: Literal["PostgreSQL", "Redis"]
    tasks: int
    """Of one drain: some seconds' work."""
    env: Mapping[str, str] = field(default_factory=dict)
    bodies_only: bool = False
    """Whether it differs from the line before in its bodies alone: only its drain is measured."""


# The fast ones would otherwise end 20,000 tasks while the second of two workers still starts.
PEERS = (
    Peer(name="taskqueue", driver="taskqueue", package="django-taskqueue", broker="PostgreSQL",
         tasks=80_000),
    Peer(name="taskqueue (async)", driver="taskqueue", package="django-taskqueue",
         broker="PostgreSQL", tasks=80_000, env={"PEERS_BODIES": "async"}, bodies_only=True),
    Peer(name="pgqueuer (async)", driver="pgqueuer", package="pgqueuer",
         broker="PostgreSQL", tasks=80_000),
    Peer(name="pgqueuer (sync)", driver="pgqueuer", package="pgqueuer", broker="PostgreSQL",
         tasks=60_000, env={"PEERS_BODIES": "sync"}, bodies_only=True),
    Peer(name="oban", driver="oban", package="oban", broker="PostgreSQL", tasks=6_000),
    Peer(name="huey (PostgreSQL)", driver="huey", package="huey", broker="PostgreSQL",
         tasks=4_000),
    Peer(name="procrastinate", driver="procrastinate", package="procrastinate",
         broker="PostgreSQL", tasks=1_500),
    Peer(name="django-tasks-db", driver="django_tasks_db", package="django-tasks-db",
         broker="PostgreSQL", tasks=800),
    Peer(name="django-q2", driver="django_q2", package="django-q2", broker="PostgreSQL",
         tasks=3_000),
    Peer(name="huey (Redis)", driver="huey", package="huey", broker="Redis", tasks=4_000),
    Peer(name="dramatiq", driver="dramatiq", package="dramatiq", broker="Redis", tasks=6_000),
    Peer(name="Celery", driver="celery", package="celery", broker="Redis", tasks=3_000),
    Peer(name="rq", driver="rq", package="rq", broker="Redis", tasks=600),
)  # fmt: skip


def python() -> Path:
    """The interpreter of the peers' environment, which is made where it is missing."""
    interpreter = ENVIRONMENT / "bin/python"
    ready = ENVIRONMENT / ".ready"
    if not ready.exists():
        print("Preparing .peers: the packages of all queues ...", file=sys.stderr, flush=True)
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        pip = [str(interpreter), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([_base(), "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([*pip, *PACKAGES], check=True)
        subprocess.run([*pip, "--editable", str(ROOT)], check=True)
        ready.touch()
    return interpreter


def versions() -> dict[str, str]:
    """The version of the peers' Python, and of each package that they have."""
    code = (
        "import importlib.metadata as m, json, platform, sys;"
        "found = {n: m.version(n) for n in sys.argv[1:]};"
        "print(json.dumps({'Python': platform.python_version(), **found}))"
    )
    names = sorted({peer.package for peer in PEERS} | {*LIBRARIES})
    command = [str(python()), "-c", code, *names]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(answer))


def _base() -> str:
    if sys.version_info >= LEAST_PYTHON:
        return sys.executable
    for path in _interpreters():
        asks = f"import sys; sys.exit(sys.version_info < {LEAST_PYTHON})"
        if subprocess.run([path, "-c", asks], capture_output=True, check=False).returncode == 0:
            return path
    raise SystemExit("The peers need Python 3.12 or newer; none was found.")


def _interpreters() -> Iterator[str]:
    for minor in (13, 12, 14):
        for found in (Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin/python"):
            yield str(found)
        if path := shutil.which(f"python3.{minor}", path=os.environ.get("PATH")):
            yield path
