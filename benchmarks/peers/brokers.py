"""Where the queues store their tasks: PostgreSQL, and Redis if the system has it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from project.postgres import Server

# Autovacuum and commits as in production; no checkpoint falls into one side of a comparison.
SETTINGS: dict[str, str | int] = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


class PostgreSQL:
    """A server, and one database at a time, which is new for every measurement."""

    variable = "PEERS_DSN"

    def __init__(self) -> None:
        self._server = Server(fsync=True, settings=SETTINGS)
        self._server.start()
        self._number = 0

    def renew(self) -> str:
        """Drop what there was; return the address of an empty database."""
        if self._number:
            self._server.query(f"DROP DATABASE peers_{self._number} WITH (FORCE)")
        self._number += 1
        self._server.create_database(f"peers_{self._number}")
        return f"postgresql://postgres@{self._server.host}:{self._server.port}/{self._name}"

    @property
    def _name(self) -> str:
        return f"peers_{self._number}"

    def questions(self) -> int:
        """How many transactions the database has seen."""
        return int(
            self._server.query(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database"
                f" WHERE datname = '{self._name}'"
            )
        )

    def settle(self) -> None:
        """Do what autovacuum would in its time, after a bulk of inserts."""
        self._server.query("VACUUM (ANALYZE)", database=self._name)

    @property
    def version(self) -> str:
        """The server's version."""
        return "PostgreSQL " + self._server.query("SHOW server_version").split()[0]

    def close(self) -> None:
        """End it."""
        self._server.close()


class Redis:
    """A server that appends to its log every second, as its manual advises."""

    variable = "PEERS_REDIS"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="taskqueue-peers-")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        options = ("--port", str(self._port), "--bind", "127.0.0.1", "--dir", self._folder.name)
        self._process = subprocess.Popen(
            ["redis-server", *options, "--appendonly", "yes", "--appendfsync", "everysec"],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError("Redis did not start.")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return self._command("PING") == "+PONG"
        except OSError:
            return False

    def _command(self, *words: str) -> str:
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            answer = connection.recv(65536).decode()
            size = answer.partition("\r\n")[0]
            while size.startswith("$") and len(answer.encode()) < int(size[1:]):
                answer += connection.recv(65536).decode()
        return answer.strip()

    def renew(self) -> str:
        """Forget everything; return the address."""
        self._command("FLUSHALL")
        return f"redis://127.0.0.1:{self._port}/0"

    def questions(self) -> int:
        """How many commands the server has seen."""
        info = self._command("INFO", "stats")
        line = next(line for line in info.splitlines() if line.startswith("total_commands_proc"))
        return int(line.partition(":")[2])

    def settle(self) -> None:
        """Nothing to do."""

    @property
    def version(self) -> str:
        """The server's version."""
        info = self._command("INFO", "server")
        line = next(line for line in info.splitlines() if line.startswith("redis_version"))
        return "Redis " + line.partition(":")[2]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


class Brokers:
    """Those that this machine can run."""

    def __enter__(self) -> Self:
        self.by_name: dict[str, PostgreSQL | Redis] = {"PostgreSQL": PostgreSQL()}
        if shutil.which("redis-server"):
            self.by_name["Redis"] = Redis()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for broker in self.by_name.values():
            broker.close()


DRIVERS = Path(__file__).parent / "drivers"
