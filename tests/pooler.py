"""A PgBouncer of the tests' own, in front of the server they work on."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import psycopg

from project.postgres import HOST, SUPERUSER, UNPRIVILEGED_USER, _free_port

Mode = Literal["transaction", "session"]
MODES: tuple[Mode, ...] = ("transaction", "session")
PROGRAM = "pgbouncer"
WHERE = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
"""Debian keeps it where ordinary users do not look."""
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}{password}

[pgbouncer]
listen_addr = {listen_host}
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 1000
server_login_retry = 1
query_wait_timeout = 10
"""
LONGEST_START = 60.0
SETTINGS = (
    "enable_hashjoin", "enable_mergejoin", "enable_seqscan", "idle_in_transaction_session_timeout",
    "jit", "lock_timeout", "plan_cache_mode", "search_path", "statement_timeout",
    "default_transaction_isolation", "default_transaction_read_only",
)  # fmt: skip
SESSION_STATE = """
SELECT ARRAY(SELECT pg_listening_channels()),
    ARRAY(SELECT statement FROM pg_prepared_statements),
    ARRAY(SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
    ARRAY(SELECT name || '=' || setting FROM pg_settings
        WHERE name = ANY (%s) ORDER BY name)
"""


def mode_of(name: str) -> Mode:
    """Return the mode of that name."""
    for mode in MODES:
        if mode == name:
            return mode
    raise ValueError(f"{name!r} is no mode of a pooler. Choose one of {MODES}.")


class Pooler:
    """PgBouncer in one of its modes; it may be killed, and started again on the same port."""

    def __init__(self, address: Mapping[str, Any], mode: Mode, *, size: int = 20) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="taskqueue-pooler-", dir="/tmp")
        self._process: subprocess.Popen[bytes] | None = None
        self._database = str(address["NAME"])
        self.host, self.port = HOST, _free_port()
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self._configuration = folder / "pgbouncer.ini"
        self._configuration.write_text(
            CONFIGURATION.format(
                host=address["HOST"] or HOST,
                port=address["PORT"] or 5432,
                user=address["USER"] or SUPERUSER,
                password=f" password='{password}'" if (password := address["PASSWORD"]) else "",
                listen_host=self.host,
                listen_port=self.port,
                mode=mode,
                size=size,
            )
        )
        self._log = folder / "log"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def address(self) -> dict[str, str]:
        """What differs from the server's own in `DATABASES`."""
        return {"HOST": self.host, "PORT": str(self.port)}

    def start(self) -> None:
        """Start it, and return once it lets somebody through to the server."""
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:  # It refuses to run as root.
            user = pwd.getpwnam(UNPRIVILEGED_USER)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [shutil.which(PROGRAM, path=WHERE) or PROGRAM, str(self._configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
                **identity,
            )
        deadline = time.monotonic() + LONGEST_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"PgBouncer did not start.\n{self.log()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once: every connection through it is broken off."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it, and remove what it left."""
        self._end(signal.SIGTERM)
        self._folder.cleanup()

    def connect(self) -> psycopg.Connection[Any]:
        """Be another client of the pool; in autocommit mode, with no prepared statements."""
        return psycopg.connect(
            host=self.host,
            port=self.port,
            dbname=self._database,
            user=SUPERUSER,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=60,
        )

    def session_state(self, client: psycopg.Connection[Any] | None = None) -> list[Any]:
        """Return what a client meets on the server connection that it gets."""
        if client is None:
            with self.connect() as another:
                return self.session_state(another)
        return client.execute(SESSION_STATE, (list(SETTINGS),)).fetchall()

    def log(self) -> str:
        """Return what it has written."""
        return self._log.read_text(errors="replace")

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), self.connect() as client:
            client.execute("SELECT 1")
            return True
        return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
