"""Prove, on the worker's own host, that all of its processes have ended.

A worker and its children hold a lock on a file in shared memory, named by the number of the
worker's incarnation. The kernel releases the lock when the last of them has ended, and not before:
a child that outlives its parent for a moment holds it too. A process that finds the file and gets
the lock knows that no body of that worker runs any more. If it finds no file, it knows nothing:
processes on another host, or in a container with its own /dev/shm, are never taken for dead, and
neither is anything on systems without /dev/shm.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine.failures import log_taken_over
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.takeover import end_departed, known_incarnations
from taskqueue.engine.tally import Tally

logger = logging.getLogger("taskqueue.worker")

DIRECTORY = Path("/dev/shm")  # noqa: S108  (in memory, never shared between hosts)
MOUNTS = Path("/proc/self/mounts")
PREFIX = "taskqueue-"
NAME = re.compile(PREFIX + "([0-9a-f]{32})")
KEPT = 7 * 86400.0  # Seconds for which the file of an unknown ended worker is kept.
STRANGERS_INTERVAL = 3600.0


class Presence:
    """A lock that is held from before the worker is visible until its last process has ended."""

    def __init__(self, incarnation: UUID) -> None:
        self.incarnation = incarnation
        # The open file, which children hold too; None if there is no such proof.
        self.fileno: int | None = None
        if not _is_in_memory():
            return
        path = _path(incarnation)
        hidden = path.with_name(f".{path.name}")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        with suppress(OSError), ExitStack() as undo:
            fileno = os.open(hidden, flags, 0o600)
            undo.callback(hidden.unlink)
            undo.callback(os.close, fileno)
            # Nobody finds it before it is locked.
            fcntl.flock(fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(path)
            undo.pop_all()
            self.fileno = fileno

    def withdraw(self) -> None:
        """Remove the file: the worker has recorded in the database that it has ended."""
        if self.fileno is not None:
            forget(self.incarnation)
        self.close()

    def close(self) -> None:
        """Release the lock. The file stays, and proves the end to others."""
        if self.fileno is not None:
            os.close(self.fileno)
            self.fileno = None


def others() -> set[UUID]:
    """Return the incarnations that have files here, whether or not they are alive."""
    try:
        names = os.listdir(DIRECTORY) if _is_in_memory() else []
    except OSError:  # This user may not be allowed to read it; then it is no proof.
        return set()
    return {UUID(named[1]) for named in map(NAME.fullmatch, names) if named}


@contextmanager
def proof_of_end(incarnation: UUID) -> Iterator[int | None]:
    """Yield the file of an incarnation of this user if all of its processes have ended, else None.

    The lock is held during the block, so that one worker at a time acts on it.
    """
    proof: int | None = None
    with ExitStack() as stack:
        with suppress(OSError):
            fileno = os.open(_path(incarnation), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            stack.callback(os.close, fileno)
            fcntl.flock(fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(fileno)
            is_file = stat.S_ISREG(status.st_mode) and status.st_nlink > 0
            if is_file and status.st_uid == os.geteuid():
                proof = fileno
        yield proof


def is_left(incarnation: UUID) -> bool:
    """Return whether a file of this user says that something of that incarnation is not ended yet.

    Either one of its processes is alive, or its leases are still to be ended.
    """
    with suppress(OSError):
        return _is_in_memory() and _path(incarnation).lstat().st_uid == os.geteuid()
    return False


def forget(incarnation: UUID) -> None:
    """Remove the file of an ended incarnation for which nothing is left to do."""
    with suppress(OSError):
        _path(incarnation).unlink()


def forget_in_time(incarnation: UUID) -> None:
    """Remove the file of an ended incarnation that nobody has needed for a week.

    Its worker's database may have no worker here any more, or may have deleted its row. The first
    call notes the time in the file, because its worker may have run for long.
    """
    with proof_of_end(incarnation) as fileno, suppress(OSError):
        if fileno is None:
            return
        status = os.fstat(fileno)
        if status.st_size == 0:
            os.write(fileno, b"ended\n")
        elif time.time() - status.st_mtime > KEPT:
            forget(incarnation)


def _path(incarnation: UUID) -> Path:
    return DIRECTORY / f"{PREFIX}{incarnation.hex}"


def _is_in_memory() -> bool:
    """Return whether the directory is a tmpfs: hosts do not share it, and a reboot clears it."""
    try:
        mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return False
    kinds = [mount[2] for mount in mounts if len(mount) > 2 and mount[1] == str(DIRECTORY)]
    return kinds[-1:] == ["tmpfs"]


class Departures:
    """Ends at once the leases of workers whose processes have ended on this host.

    As long as none has died here, a look needs no database query.
    """

    def __init__(self, policy: EndPolicy, tally: Tally) -> None:
        self._policy = policy
        self._tally = tally
        # Incarnations that this database does not know: it is asked about them once an hour.
        self._strangers: set[UUID] = set()
        self._asked_at = time.monotonic()

    def step(self, connection: BaseDatabaseWrapper) -> int:
        """End the leases of workers that have ended on this host.

        Return how many leases there were.
        """
        there = others()
        if time.monotonic() - self._asked_at > STRANGERS_INTERVAL:
            self._asked_at = time.monotonic()
            self._strangers = set()
        self._strangers &= there
        ended = list(filter(_has_ended, sorted(there - self._strangers)))
        if not ended:
            return 0
        known = known_incarnations(connection, ended)
        for incarnation in set(ended) - known:
            self._strangers.add(incarnation)
            forget_in_time(incarnation)
        return sum(self._end(connection, known))

    def _end(self, connection: BaseDatabaseWrapper, known: Iterable[UUID]) -> Iterator[int]:
        for incarnation in sorted(known):
            with proof_of_end(incarnation) as proof:
                if proof is None:
                    continue
                departed = end_departed(
                    connection, incarnation, policy=self._policy, tally=self._tally
                )
                if departed.is_done:
                    forget(incarnation)
            if departed.is_done or departed.lost:
                logger.warning(
                    "Worker has ended on this host name=%s leases=%s",
                    one_line(departed.name), len(departed.lost),
                )  # fmt: skip
            log_taken_over(connection, departed.lost)
            yield len(departed.lost)


def _has_ended(incarnation: UUID) -> bool:
    """Return whether its lock is free; the file stays."""
    with proof_of_end(incarnation) as proof:
        return proof is not None
