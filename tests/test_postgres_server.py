"""The embedded PostgreSQL: it comes up, goes down and comes back, and is never left behind."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from project import postgres
from project.postgres import HOST, SUPERUSER, Server, ServerError, StopMode, settings_from_url
from tests.worker_process import ROOT, wait_until

pytestmark = pytest.mark.slow
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")

OWNER_OF_A_SERVER = """
import sys, time
from project.postgres import Server
server = Server()
server.start()
print(server.pid, server.port, server.socket_directory.parent, flush=True)
sys.stdin.read()
"""

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000)"
STATES = "SELECT state FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1000000000)'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike those of `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def connect(server: Server, host: str = HOST) -> psycopg.Connection:
    return psycopg.connect(host=host, port=server.port, user=SUPERUSER, dbname="postgres")


def test_it_listens_on_the_loopback_interface_and_on_a_unix_socket(server: Server) -> None:
    for host in (HOST, str(server.socket_directory)):
        with connect(server, host) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_it_does_not_run_as_root(server: Server) -> None:
    expected = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert psutil.Process(server.pid).uids().effective == expected


def test_its_django_settings_lead_to_the_database_that_was_created(server: Server) -> None:
    server.create_database("it's mine")
    server.create_database("it's mine")
    settings = server.django_settings("it's mine")
    with psycopg.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        dbname=settings["NAME"],
    ) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("it's mine",)


def test_settings_reach_the_server() -> None:
    with Server(fsync=True, synchronous_commit=False, settings={"work_mem": "7MB"}) as server:
        names = ("fsync", "synchronous_commit", "work_mem", "max_connections")
        assert [server.query(f"SHOW {name}") for name in names] == ["on", "off", "7MB", "200"]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_cuts_connections_and_keeps_port_and_data(server: Server, mode: StopMode) -> None:
    server.query(f"CREATE TABLE before_{mode} AS SELECT 1")
    port, pid = server.port, server.pid
    with connect(server) as connection:
        server.restart(mode)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert server.port == port
    assert server.pid != pid
    assert server.query(f"SELECT count(*) FROM before_{mode}") == "1"


def test_it_comes_back_at_once_after_it_was_killed_amid_work(server: Server) -> None:
    server.query("CREATE TABLE before_kill AS SELECT 1")
    with connect(server) as connection, ThreadPoolExecutor() as pool:
        work = pool.submit(connection.execute, ENDLESS)
        wait_until(lambda: "active" in server.query(STATES))
        server.kill()
        assert server.pid is None
        server.start(timeout_seconds=60)
        with pytest.raises(psycopg.OperationalError):
            work.result(timeout=60)
    assert server.query("SELECT count(*) FROM before_kill") == "1"


def test_a_stopped_server_refuses_connections(server: Server) -> None:
    server.stop()
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        connect(server)
    server.start()
    connect(server).close()


def test_a_setting_that_postgresql_refuses_is_reported_with_its_log() -> None:
    server = Server(settings={"no_such_setting": "1"})
    with pytest.raises(ServerError, match='unrecognized configuration parameter "no_such_setting"'):
        server.start()
    server.close()


def test_data_in_a_given_directory_outlive_the_server(open_folder: Path) -> None:
    directory = open_folder / "deep" / "data"
    with Server(directory=directory) as first:
        first.query("CREATE TABLE kept AS SELECT 1")
    with Server(directory=directory) as second:
        assert second.query("SELECT count(*) FROM kept") == "1"
    assert (directory / "PG_VERSION").exists()


@ROOT_ONLY
def test_root_may_keep_data_where_nobody_else_may_enter(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for _ in range(2):
        with Server(directory=private / "data") as server:
            server.query("CREATE TABLE IF NOT EXISTS kept (number int)")
            server.query("INSERT INTO kept VALUES (1)")
            rows = server.query("SELECT count(*) FROM kept")
    assert rows == "2"
    assert (private / "data").is_symlink()
    shutil.rmtree((private / "data").resolve())


@ROOT_ONLY
def test_data_that_the_server_cannot_reach_are_left_as_they_are(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "PG_VERSION").write_text("18")
    server = Server(directory=private)
    tmp_path.chmod(0o700)
    with pytest.raises(ServerError, match="cannot reach the data"):
        server.start()
    server.close()
    assert (private / "PG_VERSION").read_text() == "18"


@ROOT_ONLY
def test_programs_that_nobody_else_may_run_are_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres, "_runs", lambda program: False)
    with Server() as server:
        assert server._binaries.is_relative_to(server.socket_directory.parent)
        assert server.query("SELECT 1") == "1"


def test_closing_leaves_neither_processes_nor_files() -> None:
    with Server() as server:
        pid, folder = server.pid, server.socket_directory.parent
    assert pid is not None
    assert not is_alive(pid)
    assert not folder.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, None])
def test_a_server_does_not_outlive_its_owner(how: signal.Signals | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_OF_A_SERVER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, port, folder = owner.stdout.readline().split()
        if how is None:
            owner.communicate(timeout=60)  # It comes to the end of its program.
        else:
            owner.send_signal(how)
            owner.wait(timeout=60)
    wait_until(lambda: not is_alive(int(pid)), what="the end of the server")
    wait_until(lambda: not Path(folder).exists(), what="the end of its files")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host=HOST, port=int(port), user=SUPERUSER, dbname="postgres")


def test_a_url_is_read_into_django_settings() -> None:
    assert settings_from_url("postgresql://me:p%40ss@db.example:5433/shop?sslmode=require") == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize("url", ["mysql://me@db/shop", "postgresql://me@db", ""])
def test_an_invalid_url_is_refused_with_the_correct_form(url: str) -> None:
    with pytest.raises(ValueError, match="Write postgresql://"):
        settings_from_url(url)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits for its exit code to be fetched does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
