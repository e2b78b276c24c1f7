"""Check the SQLite database: its options, its size, and its file system."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import INFO, OK, PROBLEM, Check, Finding, megabytes
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration

CHECK = Check("sqlite")
LEAST_VERSION = (3, 35)
# Milliseconds; the worker's own batches hold the lock for less.
SHORT = 5_000
# The size of a file, and its free share, for which a VACUUM is worthwhile.
LARGE, EMPTY = 64 * 1024**2, 0.5
NETWORKS = frozenset(
    (
        "9p", "afs", "afpfs", "ceph", "cifs", "davfs", "fuse.s3fs", "fuse.sshfs", "glusterfs",
        "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs", "webdav",
    )
)  # fmt: skip
MOUNTS = Path("/proc/mounts")


def look_at_sqlite(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield what keeps processes from working concurrently, or may lose data."""
    yield from _version()
    yield from _journal(connection)
    yield from _patience(connection)
    yield from _size(connection)
    yield from _place(connection)


def _version() -> Iterator[Finding]:
    old = sqlite3.sqlite_version_info < LEAST_VERSION
    yield CHECK.finding(
        PROBLEM if old else OK,
        seen=f"SQLite {sqlite3.sqlite_version}.",
        remedy=_("taskqueue needs SQLite 3.35 or newer.") if old else "",
    )


def _journal(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    mode, synchronous = _pragma(connection, "journal_mode"), _pragma(connection, "synchronous")
    if mode not in ("wal", "memory"):
        yield CHECK.warning(
            subject="journal_mode",
            seen=_("The journal mode is {mode}: readers block workers from writing.").format(
                mode=mode
            ),
            remedy=_option(connection, "'init_command': 'PRAGMA journal_mode=WAL;'"),
        )
    if synchronous == 0:
        yield CHECK.problem(
            subject="synchronous",
            seen=_("synchronous is off: a crash of the host can corrupt the whole database."),
            remedy=_option(connection, "'init_command': 'PRAGMA synchronous=NORMAL;'"),
        )
    elif synchronous == 1 and mode == "wal":
        yield CHECK.info(
            subject="synchronous",
            seen=_(
                "synchronous is NORMAL: a power loss can undo the last moments, but corrupts "
                "nothing."
            ),
            remedy=_("PRAGMA synchronous=FULL prevents that; commits become slower."),
        )


def _patience(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield that the timeout is too short. A system check covers IMMEDIATE transactions."""
    milliseconds = int(_pragma(connection, "busy_timeout"))
    if milliseconds < SHORT:
        yield CHECK.warning(
            subject="timeout",
            seen=_(
                "A statement waits {age} for the write lock, then fails with 'database is locked'."
            ).format(age=short_duration(milliseconds / 1000)),
            remedy=_option(connection, "'timeout': 20"),
        )


def _size(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    page = int(_pragma(connection, "page_size"))
    pages, free = (int(_pragma(connection, name)) for name in ("page_count", "freelist_count"))
    is_loose = pages * page >= LARGE and free >= pages * EMPTY
    yield CHECK.finding(
        INFO if is_loose else OK,
        seen=_("The database takes {size}, of which {free} are free.").format(
            size=megabytes(pages * page), free=megabytes(free * page)
        ),
        remedy=_("VACUUM returns it to the disk; run it while no process uses the database.")
        if is_loose
        else "",
    )


def _place(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    path = str(connection.settings_dict["NAME"])
    if ":memory:" in path or "mode=memory" in path:
        yield CHECK.warning(
            seen=_(
                "The database is in memory: other processes cannot see it, and it is lost at exit."
            ),
            remedy=_("Use a file."),
        )
        return
    try:
        kind = file_system(os.path.realpath(path), MOUNTS.read_text(errors="replace"))
    except OSError:  # Only Linux provides this.
        return
    if kind in NETWORKS:
        yield CHECK.problem(
            subject=path,
            seen=_(
                "The database is on a network file system ({kind}), whose locks SQLite "
                "cannot trust: it can be corrupted."
            ).format(kind=kind),
            remedy=_("Put it on a disk of this host, or use PostgreSQL."),
        )


def file_system(path: str, mounts: str) -> str:
    """Return the kind of file system of a path, from the kernel's list of mounts."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = fields[1].replace("\\040", " ").rstrip("/")
        is_there = path == place or path.startswith(f"{place}/")
        if is_there and len(place) >= best:
            best, kind = len(place), fields[2]
    return kind


def _pragma(connection: BaseDatabaseWrapper, name: str) -> Any:
    [(value,)] = fetch(connection, f"PRAGMA {name}")
    return value


def _option(connection: BaseDatabaseWrapper, text: str) -> str:
    return f"DATABASES[{connection.alias!r}]['OPTIONS']: {text}"
