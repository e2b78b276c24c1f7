"""What the doctor finds on an SQLite: how it is opened, and on what it lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.utils import load_backend

from taskqueue.monitoring.doctor import Severity, sqlite_file
from taskqueue.monitoring.doctor.sqlite_file import file_system, look_at_sqlite

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def opened(tmp_path: Path, django_db_blocker: Any) -> Iterator[Any]:
    """Opens a database of its own, with these options."""
    backend: Any = load_backend("django.db.backends.sqlite3")
    made = []

    def open_with(**options: Any) -> Any:
        settings = {
            **connection.settings_dict, "NAME": str(tmp_path / f"db{len(made)}"),
            "OPTIONS": options,
        }  # fmt: skip
        made.append(backend.DatabaseWrapper(settings, "default"))
        return made[-1]

    with django_db_blocker.unblock():
        yield open_with
    for each in made:
        each.close()


def severities(connection: Any) -> dict[str, str]:
    """By what they are about."""
    return {each.subject: str(each.severity) for each in look_at_sqlite(connection) if each.subject}


def test_a_database_as_the_installation_page_has_it_is_well(opened: Any) -> None:
    well = opened(init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", timeout=20)
    assert severities(well) == {"synchronous": "info"}


def test_the_doctor_reports_journal_mode_synchronous_and_timeout(opened: Any) -> None:
    ill = opened(init_command="PRAGMA synchronous=OFF", timeout=0.1)
    assert severities(ill) == {
        "journal_mode": "warning", "synchronous": "problem", "timeout": "warning",
    }  # fmt: skip


def test_a_network_file_system_is_a_problem(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nhost:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(sqlite_file, "MOUNTS", mounts)
    found = [each for each in look_at_sqlite(opened(timeout=20)) if "nfs4" in each.seen]
    assert [each.severity for each in found] == [Severity.PROBLEM]
    monkeypatch.setattr(sqlite_file, "MOUNTS", tmp_path / "no such file")
    assert all("network" not in each.seen for each in look_at_sqlite(opened(timeout=20)))


def test_a_file_that_is_mostly_free_is_worth_a_vacuum(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "LARGE", 1000)
    loose = opened(timeout=20)
    with loose.cursor() as cursor:
        cursor.execute("CREATE TABLE large (text text)")
        cursor.execute("INSERT INTO large VALUES (%s)", ["x" * 100_000])
        cursor.execute("DELETE FROM large")
    [found] = [each for each in look_at_sqlite(loose) if "are free" in each.seen]
    assert (found.severity, "VACUUM" in found.remedy) == (Severity.INFO, True)


MOUNTS = """\
disk / ext4 rw 0 0
disk /srv ext4 rw 0 0
host:/x /srv/with\\040space nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/with space/db", "nfs"),
        ("/srv/with spaces/db", "ext4"),
        ("/home/db", "ext4"),
    ],
)
def test_the_innermost_mount_counts(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind
