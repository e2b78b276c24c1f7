"""The folder of the demo: its database, its logs, and the lock that keeps a second demo out."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project.databases import SQLITE_NAME
from project.demo.errors import DemoError

LOCK_NAME = "lock"
POSTGRES_NAME = "postgres"


@contextmanager
def clean_directory(directory: Path) -> Iterator[Path]:
    """Empty the demo's folder of what an earlier demo left, and hold it until the end.

    Raises `DemoError` while another demo runs there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK_NAME).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise DemoError(
                f"A demo already runs in {directory}, as process {lock.read().strip()}."
                " Stop it with Ctrl-C, or set TASKQUEUE_DEMO_DIRECTORY to another folder."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        _remove_leftovers(directory)
        yield directory


def _remove_leftovers(directory: Path) -> None:
    for pattern in (f"{SQLITE_NAME}*", "*.log"):
        for path in directory.glob(pattern):
            path.unlink()
    postgres = directory / POSTGRES_NAME
    if postgres.is_symlink():  # Where root may not keep PostgreSQL's data here.
        shutil.rmtree(postgres.resolve(), ignore_errors=True)
        postgres.unlink()
    elif postgres.exists():
        shutil.rmtree(postgres)
