"""The databases and the worker processes of the tests."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import hypothesis
import pytest
from django.conf import settings as django_settings
from django.db import connection

from project.postgres import Server
from tests.isolation import forget_charts, no_language, own_proofs, patience
from tests.pooler import PROGRAM, WHERE, Pooler, mode_of
from tests.proofs import forget_proofs
from tests.sharing_out import (
    DATABASE,
    IS_SHARED_OUT,
    MARKERS,
    ONCE,
    SEED,
    is_left_to_the_other_database,
)
from tests.warm_start import WarmStarts
from tests.worker_process import (
    WorkerProcess,
    end_other_sessions,
    poolers,
    worker_environment,
)

__all__ = ["forget_charts", "no_language", "own_proofs", "patience"]

StartWorker = Callable[..., WorkerProcess]
Drain = Callable[..., str]

pytest_plugins = ["taskqueue.testing.pytest"]

gc.disable()  # Until all tests are collected.

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")

POOLER = os.environ.get("TASKQUEUE_TEST_POOLER", "")
"""The mode of the PgBouncer that workers connect through: `transaction`, `session` or empty."""
POOL_SIZE = 100
"""In session mode every connection of every worker has one of its own."""
collect_ignore_glob = ONCE if DATABASE == "postgresql" else []
DIRECT = "direct_only"
"""The marker of tests that need workers on sessions of their own, such as those that listen."""
LEFT_OUT = pytest.StashKey[int]()
"""How many tests of this run are left to the other database."""
TOOL_NAMES = {
    # Without windows it does the same for two thirds of the processor time.
    "chromium": ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
}


def pytest_configure(config: pytest.Config) -> None:
    direct = "about workers on sessions of their own; skipped behind a pooler"
    for name, meaning in {**MARKERS, DIRECT: direct}.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    signal.signal(signal.SIGTERM, _end_as_ctrl_c_does)
    # A shell without job control lets what it starts with & ignore Ctrl-C, and so would all that
    # the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_as_ctrl_c_does(signum: int, frame: FrameType | None) -> NoReturn:
    """Let fixtures end their processes when a CI cuts the run short."""
    raise KeyboardInterrupt


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where the whole suite is run, each of some tests is run on one of the two databases."""
    if not IS_SHARED_OUT:
        return
    left_out = {item for item in items if is_left_to_the_other_database(item)}
    if left_out:
        config.stash[LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the garbage collector what stays to the end: thousands of tests, and all modules."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_report_collectionfinish(config: pytest.Config) -> str:
    count = config.stash.get(LEFT_OUT, 0)
    if not count:
        return ""
    return (
        f"{count} tests are left to the other database, chosen by a hash of their names; "
        "TASKQUEUE_FULL=1 runs all of them on both."
    )


def pytest_report_header() -> list[str]:
    where = os.environ.get("TASKQUEUE_TEST_DATABASE_URL", "").rpartition("@")[2]
    way = f"workers behind PgBouncer: {POOLER}" if POOLER else ""
    database = f"database: {DATABASE} {where if DATABASE == 'postgresql' else ''} {way}".rstrip()
    return [database, f"samples: TASKQUEUE_TEST_SEED={SEED}"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for database in ("postgresql", "sqlite"):
        if item.get_closest_marker(f"{database}_only") and database != DATABASE:
            pytest.skip(f"about {database} only")
    if POOLER and item.get_closest_marker(DIRECT):
        pytest.skip("about workers on sessions of their own")


def require_tool(name: str) -> str:
    """Return the path of an optional program; skip the test where it is absent.

    With TASKQUEUE_NO_SKIP=1, as in CI, its absence is a failure.
    """
    for program in TOOL_NAMES.get(name, (name,)):
        if path := shutil.which(program, path=WHERE):
            return path
    message = f"{name} is not installed"
    if os.environ.get("TASKQUEUE_NO_SKIP") == "1":
        pytest.fail(f"{message}, and TASKQUEUE_NO_SKIP=1 forbids to skip", pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def _embedded_postgresql() -> Iterator[Server | None]:
    """The server of this session; None where the tests run on another one or on SQLite."""
    if DATABASE != "postgresql" or os.environ.get("TASKQUEUE_TEST_DATABASE_URL"):
        yield None
        return
    with Server() as server:
        yield server


@pytest.fixture
def postgresql_server(
    _embedded_postgresql: Server | None, transactional_db: None
) -> Iterator[Server]:
    """The embedded server, for tests that stop and restart it; they are skipped elsewhere."""
    if _embedded_postgresql is None:
        pytest.skip("needs the embedded PostgreSQL")
    yield _embedded_postgresql
    _heal(_embedded_postgresql)


def _heal(server: Server) -> None:
    """Leave a server that runs and a connection that works, for the flush after the test."""
    server.start()
    connection.close()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    _embedded_postgresql: Server | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Point Django to a database that other processes can open too."""
    database = django_settings.DATABASES["default"]
    if _embedded_postgresql is not None:
        database.update(_embedded_postgresql.django_settings(database["NAME"]))
    elif DATABASE == "sqlite":
        path = tmp_path_factory.mktemp("database") / "test.sqlite3"
        database["TEST"] = {**database.get("TEST", {}), "NAME": str(path)}


@pytest.fixture(scope="session")
def _pooler(django_db_setup: None) -> Iterator[None]:
    """The PgBouncer between the workers and the test database, where one is asked for."""
    if not POOLER or DATABASE != "postgresql":
        yield
        return
    require_tool(PROGRAM)
    with Pooler(connection.settings_dict, mode_of(POOLER), size=POOL_SIZE) as pooler:
        poolers.append(pooler)
        yield
        poolers.remove(pooler)


@pytest.fixture(scope="session")
def _warm_starts(_pooler: None) -> Iterator[WarmStarts]:
    """Where workers are forked from that have the environment of this session."""
    warm_starts = WarmStarts(worker_environment({}))
    yield warm_starts
    warm_starts.end()


@pytest.fixture
def start_worker(
    _embedded_postgresql: Server | None,
    _warm_starts: WarmStarts,
    transactional_db: None,
    tmp_path: Path,
) -> Iterator[StartWorker]:
    """Start real worker processes: `start_worker("--queues", "mail", settings={...})`.

    `settings` is the setting TASKQUEUE of that worker, `env` are further environment variables.
    Whatever happens, none of them outlives the test.
    """
    workers: list[WorkerProcess] = []

    def start(
        *arguments: str,
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        wait_ready: bool = True,
    ) -> WorkerProcess:
        log_path = tmp_path / f"worker-{len(workers) + 1}.log"
        worker = WorkerProcess(
            *arguments, log_path=log_path, env=env, settings=settings, warm_starts=_warm_starts
        )
        workers.append(worker)
        if wait_ready:
            worker.wait_until_ready()
        return worker

    yield start
    for worker in workers:
        worker.destroy()
    for worker in workers:
        print(worker)  # pytest shows it when the test has failed.
    if _embedded_postgresql is not None:
        _heal(_embedded_postgresql)
    if workers:
        end_other_sessions()
        forget_proofs()


@pytest.fixture
def drain(start_worker: StartWorker) -> Drain:
    """Run a worker with `--drain` to its end, and return its log."""

    def run(*arguments: str, timeout: float = 120, **options: Any) -> str:
        worker = start_worker("--drain", *arguments, wait_ready=False, **options)
        code = worker.wait(timeout)
        assert code == 0, f"The worker ended with {code}.\n{worker}"
        return worker.log()

    return run
