"""The disk fills up."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

from django.db import connection

from tests.chaos.faults.base import BOTH, Fault
from tests.chaos.faults.outages import no_crashes
from tests.chaos.fleet import LEASE

MEGABYTES = 192
TABLES = ("taskqueue_task", "taskqueue_lease", "sample_effect")


class DiskFull(Fault):
    """The disk with the tables (on SQLite: with the database) fills up, and gets room again."""

    name = "disk_full"
    expectation = "enqueue raises clearly; outcomes are kept and sent again"
    databases = BOTH

    @classmethod
    def obstacle(cls) -> str:
        if os.geteuid() != 0 or not shutil.which("mount"):
            return "a small disk cannot be mounted"
        return ""

    def prepare(self) -> None:
        stage = self.stage
        disk = stage.folder / "disk"
        disk.mkdir()
        stage.execute("SELECT 1")
        command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0777", "tmpfs", str(disk)]
        if subprocess.run(command, capture_output=True).returncode:
            self.stage.problems.append("mount refused to mount a small disk")
            raise RuntimeError("no small disk")
        stage.at_end(lambda: subprocess.run(["umount", "-l", str(disk)], check=True))
        self._ballast = disk / "ballast"
        if connection.vendor == "postgresql":
            assert stage.database.server is not None
            owner = stage.database.server.socket_directory.stat()
            space = disk / "space"
            space.mkdir(mode=0o700)
            os.chown(space, owner.st_uid, owner.st_gid)
            stage.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
            for table in TABLES:
                stage.execute(f"ALTER TABLE {table} SET TABLESPACE small")
        else:
            stage.move_database(disk)
        super().prepare()

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.2)
        began = stage.now()
        self._fill()
        end = time.monotonic() + self.chance.uniform(2, LEASE + 2)
        while time.monotonic() < end:
            time.sleep(0.2)
            self._fill()
        self._ballast.unlink()
        stage.note(self.name, began, *stage.workers)

    def _fill(self) -> None:
        """Leave no room, also none that was given back meanwhile."""
        block = b"\0" * 65536
        with suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(block)
        with suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(block[:4096])

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        errors = self.stage.client.errors
        if not any("No space left" in error or "disk is full" in error for error in errors):
            yield f"the client was not told that the disk is full, but {dict(errors)}"
